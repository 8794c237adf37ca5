"""Compares the values of an embedded invoice with what is printed on its pages.

`labels.py` has the words that name a value without doubt, `readings.py` all that a text can mean, and `paper.py`
what stands where. `head_values.py` and `invoice_lines.py` compare, and `comparison.py` puts them together. A difference
is claimed only where a clear label stands beside another value; what is not found is merely not found.
"""

from __future__ import annotations

from waybill_documents.printed.comparison import compare_with_pages

__all__ = ["compare_with_pages"]

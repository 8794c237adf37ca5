"""The invoice of EN 16931 as its business terms, read from and written in both of its syntaxes.

One table (`document_terms`, `party_terms`, `payment_terms`, `line_terms`) says for each term (BT) and group (BG) where
it stands in Cross Industry Invoice and where in UBL, by the two syntax bindings of the standard (CEN/TS 16931-3-2 and
3-3). `reader.py` goes through the table to fill the model, `writer.py` goes through the same table to write it, so
that both directions cannot drift apart. What the table did not use of a document has no place in the model and is
reported.
"""

from __future__ import annotations

from waybill_documents.hybrid.en16931.model import TermGroup, TermValue
from waybill_documents.hybrid.en16931.reader import Detail, Read, read
from waybill_documents.hybrid.en16931.syntaxes import Syntax
from waybill_documents.hybrid.en16931.writer import write

__all__ = ["Detail", "Read", "Syntax", "TermGroup", "TermValue", "read", "write"]

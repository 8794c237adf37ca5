"""What a document says, in the reader's language: names of values, and findings as sentences.

Findings are made in English, with all they were made from in `params`. English is what they say; the other languages
are here, one module each.
"""

from __future__ import annotations

from waybill_documents.messages.findings import LANGUAGES, Language, tell
from waybill_documents.messages.names import describe

__all__ = ["LANGUAGES", "Language", "describe", "tell"]

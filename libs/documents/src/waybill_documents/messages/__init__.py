"""Messages: what findings and faults say, and how it is said in the reader's language.

`DocumentMessage` is a key and its parameters. `en.toml` and `id.toml` hold the sentences, one file per language. `tell`
renders a finding, `describe` names a value by its title in the mapping.
"""

from __future__ import annotations

from waybill_documents.messages.message import DocumentMessage, Mistake, Shown
from waybill_documents.messages.reader import describe, readable, tell
from waybill_documents.messages.sentences import LANGUAGES, LanguageCode

__all__ = ["LANGUAGES", "DocumentMessage", "LanguageCode", "Mistake", "Shown", "describe", "readable", "tell"]

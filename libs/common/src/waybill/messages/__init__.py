"""Sentences for people: a key and its parameters where they arise, and words only at the edge.

Raise `Refused(msg("form.too_many_parts", number=30))`. The exception, the job's row and the problem document carry the
key and the parameters. `str()` of a message is its English sentence; a page says it in the reader's language
(`Language.tell`). The words are in `en.toml` and `id.toml` here, and in `languages/` of each pipeline's pages.

Nothing here imports a web framework: a worker writes English error messages, too.
"""

from waybill.messages.language import Language, in_english, languages
from waybill.messages.message import BadMessage, Message, msg

__all__ = ["BadMessage", "Language", "Message", "in_english", "languages", "msg"]

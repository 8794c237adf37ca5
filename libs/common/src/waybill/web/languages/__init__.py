"""What the pages say, in the reader's language: a catalogue for each language, and who reads which.

Pages ask `language_of(request)` once, and pass it on: `language.say("queue.title")` in Python, `t("queue.title")` in
templates and scripts. `docs/pages.md` says how to add a message, and how to add a language.
"""

from waybill.web.languages.language import ENGLISH, LANGUAGES, Language
from waybill.web.languages.preference import LANGUAGE_COOKIE, language_of
from waybill.web.languages.script_messages import for_scripts

__all__ = ["ENGLISH", "LANGUAGES", "LANGUAGE_COOKIE", "Language", "for_scripts", "language_of"]

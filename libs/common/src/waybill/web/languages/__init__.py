"""Which language a page speaks, and the messages that its scripts need. The words are in `waybill.messages`.

A route asks `language_of(request)` once and passes the language on: `language.say("sign_in.title")` in Python,
`t("sign_in.title")` in templates and scripts. `docs/pages.md` says how to add a message, and how to add a language.
"""

from waybill.messages import Language
from waybill.web.languages.preference import ENGLISH, LANGUAGE_COOKIE, LANGUAGES, language_of
from waybill.web.languages.script_messages import for_scripts

__all__ = ["ENGLISH", "LANGUAGES", "LANGUAGE_COOKIE", "Language", "for_scripts", "language_of"]

"""Messages for scripts: as JSON in the page, which no browser runs, so that the policy needs no exception."""

from __future__ import annotations

import functools
import json

from markupsafe import Markup

from waybill.web.languages.language import ENGLISH, Language

_ALWAYS = frozenset({"everywhere", "times", "dates"})


@functools.cache
def for_scripts(language: Language, *tables: str) -> Markup:
    """The messages of these tables. With `errors`, also what the API's English sentences are in this language."""
    wanted = _ALWAYS | set(tables)
    messages = {
        key: message.other if message.one is None else {"one": message.one, "other": message.other}
        for key, message in language.messages.items()
        if key.partition(".")[0] in wanted
    }
    known = {
        english.other: language.messages[key].other
        for key, english in ENGLISH.messages.items()
        if "errors" in wanted and language is not ENGLISH and key.startswith(("errors.", "sentences."))
    }
    text = json.dumps({"messages": messages, "known": known}, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - our own words, and nothing in them ends the element

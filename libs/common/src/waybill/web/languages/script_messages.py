"""Messages for scripts: JSON inside the page, which no browser runs, so the content policy needs no exception."""

from __future__ import annotations

import functools
import json

from markupsafe import Markup

from waybill.messages import Language

_ALWAYS = frozenset({"everywhere", "times", "dates"})
_ERRORS = frozenset({"api_key", "form", "gateway_call", "request", "retention", "storage"})
"""The tables of what the platform refuses with: a script that explains problems needs them beside `errors`."""


@functools.cache
def for_scripts(language: Language, *tables: str) -> Markup:
    """The messages of these tables, without the tables inside them, which are named by themselves.

    With `errors`, also everything else that the platform's problems may say.
    """
    wanted = _ALWAYS | set(tables) | (_ERRORS if "errors" in tables else frozenset())
    messages = {
        key: template.other if template.one is None else {"one": template.one, "other": template.other}
        for key, template in language.messages.items()
        if key.rpartition(".")[0] in wanted
    }
    text = json.dumps({"messages": messages}, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))  # noqa: S704 - our own words, and nothing in them ends the element

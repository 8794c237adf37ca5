"""The catalogues: one TOML file of sentences for each language, and how a sentence is filled in.

A sentence has its parameters in braces. `{name}` is the parameter as text, or, if it is itself a message, that message
in the same language. `{name:form}` shows it in another form:

    {x:name}      the last part of a path: `lines[3].unit_code` is unit_code
    {x:words}     a name as words: `lines[3].unit_code` is unit code
    {x:title}     what the mapping calls it in the reader's language; its name as words if it has no title
    {x:count}     a whole number with the language's thousands separator
    {x:quoted}    one or more phrases in quotation marks, with the language's “or” before the last one
    {x:phrases}   phrases in quotation marks, with commas between them
    {x:names}     names as titles, joined by the language's `[lists] names`
    {x:tags}      element names in angle brackets, joined by “or”
    {x:element}   the last step of an XML path, without prefix and position

A part in square brackets is left out when one of its parameters is missing. An entry with `one` and `other` is chosen
by the parameter `count`. Braces and brackets that are meant as such are doubled.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any, Literal, NamedTuple

LanguageCode = Literal["en", "id"]
LANGUAGES: tuple[LanguageCode, ...] = ("en", "id")

Titles = Callable[[str], str]
"""What a value, a table or a check is called within a sentence, by its path or rule."""

_PIECE = re.compile(r"\{\{|\}\}|\[\[|\]\]|\{(?P<name>[a-z_]+)(?::(?P<form>[a-z]+))?\}|(?P<open>\[)|(?P<close>\])")
_DEEPEST = 5
"""Messages within messages. Ours are three deep; a record could hold anything."""


class Placeholder(NamedTuple):
    """A parameter in a sentence."""

    name: str
    form: str
    optional: bool


Part = str | Placeholder
Section = tuple[bool, tuple[Part, ...]]
"""Parts of a sentence, and whether they are left out when a parameter is missing."""


def sentence(key: str, params: Mapping[str, Any], language: str, titles: Titles | None = None) -> str | None:
    """The sentence of a key; None when the language does not have it."""
    return _sentence(key, params, language, titles or name_as_words, 0)


def name_as_words(path: str) -> str:
    """A name as words: `net_total` is net total, `lines[3].amount` is amount."""
    return path.rpartition(".")[2].replace("_", " ")


@cache
def entries(language: str) -> Mapping[str, str | Mapping[str, str]]:
    """All sentences of a language by their keys."""
    return dict(_flattened(_loaded(language)["messages"], ""))


@cache
def sections(text: str) -> tuple[Section, ...]:
    """A sentence taken apart."""
    found: list[Section] = []
    parts: list[Part] = []
    optional = False
    at = 0
    for piece in _PIECE.finditer(text):
        parts.append(text[at : piece.start()])
        at = piece.end()
        if piece["open"] or piece["close"]:
            found.append((optional, tuple(parts)))
            parts, optional = [], piece["open"] is not None
        elif piece["name"]:
            parts.append(Placeholder(piece["name"], piece["form"] or "", optional))
        else:
            parts.append(piece[0][0])
    parts.append(text[at:])
    return (*found, (optional, tuple(parts)))


@cache
def _loaded(language: str) -> dict[str, Any]:
    if language not in LANGUAGES:
        return {"messages": {}}
    file = resources.files("waybill_documents") / "messages" / f"{language}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8"))


def _flattened(table: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, str | Mapping[str, str]]]:
    for name, entry in table.items():
        if isinstance(entry, str) or entry.keys() == {"one", "other"}:
            yield prefix + name, entry
        else:
            yield from _flattened(entry, f"{prefix}{name}.")


def _sentence(key: str, params: Mapping[str, Any], language: str, titles: Titles, depth: int) -> str | None:
    entry = entries(language).get(key)
    if entry is None or depth > _DEEPEST:
        return None
    if not isinstance(entry, str):
        entry = entry["one" if params.get("count") == 1 else "other"]
    shown = params.get("shown")
    values = {**params, **shown} if isinstance(shown, dict) else params
    said = ""
    for optional, parts in sections(entry):
        if optional and any(isinstance(part, Placeholder) and values.get(part.name) is None for part in parts):
            continue
        for part in parts:
            said += part if isinstance(part, str) else _filled(part, values, language, titles, depth)
    return said


def _filled(part: Placeholder, values: Mapping[str, Any], language: str, titles: Titles, depth: int) -> str:
    value = values.get(part.name)
    form = _FORMS.get(part.form)
    if form is not None and value is not None:
        return form(value, titles, _loaded(language)["lists"])
    return _text(value, language, titles, depth)


def _text(value: Any, language: str, titles: Titles, depth: int) -> str:
    if isinstance(value, dict):
        inner = value.get("params")
        params = inner if isinstance(inner, dict) else {}
        own = params.get("messages")
        if isinstance(own, dict) and isinstance(own.get(language), str):
            return str(own[language])
        said = _sentence(str(value.get("key")), params, language, titles, depth + 1)
        return said if said is not None else str(value.get("text", ""))
    if isinstance(value, list):
        return "".join(_text(each, language, titles, depth) for each in value)
    return "" if value is None else str(value)


Words = Mapping[str, str]
"""What the catalogue says about lists and numbers."""


def _count(value: Any, _titles: Titles, words: Words) -> str:
    return f"{value:,}".replace(",", words["thousands"]) if isinstance(value, int) else str(value)


def _quoted(value: Any, _titles: Titles, words: Words) -> str:
    phrases = value if isinstance(value, list) else [value]
    return _listed([f"“{phrase}”" for phrase in phrases], words["or"])


def _phrases(value: Any, _titles: Titles, _words: Words) -> str:
    return ", ".join(f"“{phrase}”" for phrase in value)


def _tags(value: Any, _titles: Titles, words: Words) -> str:
    names = value if isinstance(value, list) else [value]
    return f" {words['or']} ".join(f"<{name}>" for name in names)


def _names(value: Any, titles: Titles, words: Words) -> str:
    return words["names"].join(titles(str(path)) for path in value) if isinstance(value, list) else titles(str(value))


def _element(value: Any, _titles: Titles, _words: Words) -> str:
    return str(value).rpartition("/")[2].rpartition(":")[2].partition("[")[0]


def _listed(phrases: Sequence[str], last: str) -> str:
    return f"{', '.join(phrases[:-1])} {last} {phrases[-1]}" if len(phrases) > 1 else "".join(phrases)


_FORMS: dict[str, Callable[[Any, Titles, Words], str]] = {
    "name": lambda value, _titles, _words: str(value).rpartition(".")[2],
    "words": lambda value, _titles, _words: name_as_words(str(value)),
    "title": lambda value, titles, _words: titles(str(value)),
    "count": _count,
    "quoted": _quoted,
    "phrases": _phrases,
    "names": _names,
    "tags": _tags,
    "element": _element,
}
FORMS = frozenset(_FORMS)

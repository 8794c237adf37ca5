"""Source text to lexemes: names, numbers, texts and signs, without spaces and comments."""

from __future__ import annotations

import re
from typing import NamedTuple

from waybill_passport.rules import limits
from waybill_passport.rules.mistakes import PARSE_ERROR, RuleMistake


class Lexeme(NamedTuple):
    kind: str  # name, int, dec, text, sign or end
    text: str  # as it is written; a text without its quotes and escapes
    at: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the rules"
        return f'"{self.text[:40]}"' if self.kind == "text" else f"'{self.text[:40]}'"


_PATTERN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+|--[^\n]*)
    |(?P<dec>[0-9]+\.[0-9]+)
    |(?P<int>[0-9]+)
    |(?P<name>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<text>"(?:[^"\\\n]|\\[^\n])*")
    |(?P<sign>->|\|\||&&|==|!=|<=|>=|[-+*/!<>=(){}\[\],;:.])
    """,
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x1f]")


def lexemes(source: str) -> list[Lexeme]:
    """All lexemes of the source; the last one is of the kind `end`."""
    if len(source) > limits.SOURCE:
        raise RuleMistake(PARSE_ERROR, f"The rules have more than {limits.SOURCE} characters.", source, 0)
    if broken := _SURROGATE.search(source):
        raise RuleMistake(PARSE_ERROR, "Here is half a character, which no text may hold.", source, broken.start())
    found: list[Lexeme] = []
    at = 0
    while at < len(source):
        match = _PATTERN.match(source, at)
        if match is None:
            raise RuleMistake(PARSE_ERROR, _unknown(source[at]), source, at)
        kind = str(match.lastgroup)
        if kind == "text":
            found.append(Lexeme(kind, _text(source, match[0][1:-1], at + 1), at))
        elif kind != "space":
            _check_length(kind, match[0], source, at)
            found.append(Lexeme(kind, match[0], at))
        at = match.end()
    found.append(Lexeme("end", "", len(source)))
    return found


def _unknown(letter: str) -> str:
    if letter == '"':
        return "This text does not end in its line. Close it with a quotation mark."
    if letter in "&|":
        return f"A single '{letter}' means nothing. Write '{letter * 2}'."
    if letter == "'":
        return 'Texts stand in double quotation marks: "…".'
    if letter == "#":
        return "A comment begins with '--'."
    return f"The character {letter!a} means nothing here."


def _check_length(kind: str, text: str, source: str, at: int) -> None:
    if kind == "name" and len(text) > limits.NAME:
        raise RuleMistake(PARSE_ERROR, f"A name has at most {limits.NAME} letters.", source, at)
    if kind in ("int", "dec") and len(text) > limits.DIGITS:
        raise RuleMistake(PARSE_ERROR, f"A number has fewer than {limits.DIGITS} digits.", source, at)


def _text(source: str, inner: str, at: int) -> str:
    if raw := _CONTROL.search(inner):
        escape = {"\t": "\\t", "\r": "\\r"}.get(raw[0], f"\\u{ord(raw[0]):04x}")
        raise RuleMistake(PARSE_ERROR, f"Write this character as {escape} in a text.", source, at + raw.start())

    def replaced(match: re.Match[str]) -> str:
        letter = chr(int(match[1], 16)) if match[1] else _ESCAPES.get(match[2], "")
        if not letter:
            message = f'There is no escape \\{match[2]}. There are \\" \\\\ \\/ \\b \\f \\n \\r \\t and \\uXXXX.'
            raise RuleMistake(PARSE_ERROR, message, source, at + match.start())
        if letter == "\0" or _SURROGATE.match(letter):
            raise RuleMistake(PARSE_ERROR, "No text may hold this character.", source, at + match.start())
        return letter

    text = _ESCAPE.sub(replaced, inner)
    if len(text) > limits.LITERAL:
        raise RuleMistake(PARSE_ERROR, f"A text has at most {limits.LITERAL} characters.", source, at)
    return text

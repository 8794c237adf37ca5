"""From the text of an expression to its words and signs. The first step of parsing; `parser.py` is the next."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from waybill_documents.expressions.errors import ExpressionError

Sort = Literal["number", "text", "name", "sign", "end"]


class Token(NamedTuple):
    """One word or sign and where it stands."""

    sort: Sort
    text: str
    """A text without its quotes; everything else as written, except that `+-` is `±`."""
    position: int


# `re` is safe here: the pattern is ours, and no two branches can begin with the same character.
_TOKEN = re.compile(
    r"(?P<number>[0-9]+(?:\.[0-9]+)?)"
    r"|(?P<text>'(?:[^']|'')*')"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*)"
    r"|(?P<sign>==|!=|<=|>=|\+-|[-+*/<>±(),])"
)
_SPACES = re.compile(r"[ \t\r\n\u00a0]*")

_HINTS = {
    '"': "texts stand in single quotes, as in 'kg'",
    "“": "texts stand in single quotes, as in 'kg'",
    "‘": "texts stand in straight single quotes, as in 'kg'",
    "’": "texts stand in straight single quotes, as in 'kg'",
    "'": "this text has no closing quote",
    "=": "to compare, write ==",
    "!": "write != for “is not”, and not in front of what must not hold",
    "&": "write and",
    "|": "write or",
    "^": "there are no powers; write x * x",
    "%": "there is no per cent sign; write x / 100",
    "×": "to multiply, write *",
    "÷": "to divide, write /",
    "−": "a minus is written with the hyphen, -",
    ".": "a number begins with a digit, as in 0.5",
    ";": "write , between the values of a function",
}


def tokens(text: str) -> list[Token]:
    """All words and signs, with an end mark as the last."""
    found: list[Token] = []
    position = _end_of_spaces(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise ExpressionError(_HINTS.get(text[position], f"{text[position]!r} has no meaning here"), position)
        found.append(_token(match))
        position = _end_of_spaces(text, match.end())
    found.append(Token("end", "", len(text)))
    return found


def _token(match: re.Match[str]) -> Token:
    written, position = match.group(), match.start()
    match match.lastgroup:
        case "number":
            return Token("number", written, position)
        case "text":
            return Token("text", written[1:-1].replace("''", "'"), position)
        case "name":
            return Token("name", written, position)
        case _:
            return Token("sign", "±" if written == "+-" else written, position)


def _end_of_spaces(text: str, position: int) -> int:
    match = _SPACES.match(text, position)
    return match.end() if match else position

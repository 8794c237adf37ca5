"""Splits the text of an expression into words and signs. This is the first step of parsing; `parser.py` is the next."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from waybill_documents.messages import DocumentMessage, Mistake


class ExpressionError(Mistake):
    """An expression that does not follow the language."""

    def __init__(self, why: DocumentMessage, position: int) -> None:
        super().__init__(DocumentMessage("expression.mistake", why=why, position=position + 1))
        self.sentence = why.english
        """What is wrong, in English, without the position."""
        self.position = position
        """Counted from 0."""


Sort = Literal["number", "text", "name", "sign", "end"]


class Token(NamedTuple):
    """One word or sign and its position."""

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
    '"': DocumentMessage("expression.hint.double_quote"),
    "“": DocumentMessage("expression.hint.double_quote"),
    "‘": DocumentMessage("expression.hint.curly_quote"),
    "’": DocumentMessage("expression.hint.curly_quote"),
    "'": DocumentMessage("expression.hint.open_quote"),
    "=": DocumentMessage("expression.hint.equals"),
    "!": DocumentMessage("expression.hint.exclamation"),
    "&": DocumentMessage("expression.hint.ampersand"),
    "|": DocumentMessage("expression.hint.pipe"),
    "^": DocumentMessage("expression.hint.power"),
    "%": DocumentMessage("expression.hint.percent"),
    "×": DocumentMessage("expression.hint.times"),
    "÷": DocumentMessage("expression.hint.divide"),
    "−": DocumentMessage("expression.hint.minus"),
    ".": DocumentMessage("expression.hint.point"),
    ";": DocumentMessage("expression.hint.semicolon"),
}


def tokens(text: str) -> list[Token]:
    """All words and signs, with an end mark as the last."""
    found: list[Token] = []
    position = _end_of_spaces(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            unknown = DocumentMessage("expression.unknown_sign", sign=text[position])
            raise ExpressionError(_HINTS.get(text[position], unknown), position)
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

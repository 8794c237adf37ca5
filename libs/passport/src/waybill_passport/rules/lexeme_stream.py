"""The lexemes of a source one by one, and what every part of the parser asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from waybill_passport.rules import limits
from waybill_passport.rules.lexer import Lexeme, lexemes
from waybill_passport.rules.mistakes import PARSE_ERROR, RuleMistake, did_you_mean
from waybill_passport.rules.types import TYPE_NAMES

KEYWORDS = frozenset(
    ("field", "let", "assert", "if", "then", "else", "true", "false", "example", "property", *TYPE_NAMES)
)

T = TypeVar("T")


class LexemeStream:
    """Where the parser is in the source, and how deep."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._lexemes = lexemes(source)
        self._position = 0
        self._depth = 0

    def peek(self, ahead: int = 0) -> Lexeme:
        position = self._position + ahead
        return self._lexemes[position] if position < len(self._lexemes) else self._lexemes[-1]

    def next(self) -> Lexeme:
        lexeme = self.peek()
        self._position += 1
        return lexeme

    def at_sign(self, *signs: str, ahead: int = 0) -> bool:
        lexeme = self.peek(ahead)
        return lexeme.kind == "sign" and lexeme.text in signs

    def at_word(self, *words: str) -> bool:
        lexeme = self.peek()
        return lexeme.kind == "name" and lexeme.text in words

    def accept(self, sign: str) -> bool:
        """Whether the sign comes next; then it is taken."""
        found = self.at_sign(sign)
        self._position += found
        return found

    def expect(self, sign: str, where: str) -> Lexeme:
        if not self.at_sign(sign):
            raise self.mistake(f"Here should be '{sign}' {where}, not {self.peek()}.")
        return self.next()

    def expect_word(self, word: str, where: str) -> Lexeme:
        lexeme = self.peek()
        if not self.at_word(word):
            hint = did_you_mean(lexeme.text, [word]) if lexeme.kind == "name" else ""
            raise self.mistake(f"Here should be '{word}' {where}, not {lexeme}.{hint}")
        return self.next()

    def name(self, what: str) -> str:
        """A name that rules choose."""
        lexeme = self.peek()
        if lexeme.kind != "name":
            raise self.mistake(f"Here should be {what}, not {lexeme}.")
        if lexeme.text in KEYWORDS:
            raise self.mistake(f"'{lexeme.text}' is a word of the language. Choose another name as {what}.")
        return self.next().text

    def text(self, what: str) -> str:
        if self.peek().kind != "text":
            raise self.mistake(f"Here should be {what} in quotation marks, not {self.peek()}.")
        return self.next().text

    def number(self, what: str, most: int) -> int:
        lexeme = self.peek()
        if lexeme.kind != "int":
            raise self.mistake(f"Here should be {what}, not {lexeme}.")
        if int(lexeme.text) > most:
            raise self.mistake(f"This is larger than {most}, which is the most for {what}.")
        return int(self.next().text)

    def path(self) -> str:
        """A field's path, such as `battery.mass`. Words of the language may be parts of it."""
        start = self.peek()
        parts = [self._part()]
        while self.accept("."):
            parts.append(self._part())
        path = ".".join(parts)
        if len(path) > limits.PATH:
            raise self.mistake(f"A path has at most {limits.PATH} letters.", start)
        return path

    def _part(self) -> str:
        if self.peek().kind != "name":
            raise self.mistake(f"Here should be the path of a field, such as battery.mass, not {self.peek()}.")
        return self.next().text

    def several(self, read: Callable[[], T], end: str, what: str) -> tuple[T, ...]:
        """Parts with commas between them, until the sign `end`, which is taken. A comma may follow the last one."""
        parts: list[T] = []
        while not self.at_sign(end):
            parts.append(read())
            if not self.accept(","):
                break
        self.expect(end, f"after {what}, or a comma")
        return tuple(parts)

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Go one level down, unless that is too deep."""
        self._depth += 1
        if self._depth > limits.NESTING:
            raise self.mistake(
                f"This is nested more than {limits.NESTING} levels deep. Give parts of it names with let."
            )
        yield
        self._depth -= 1

    def mistake(self, message: str, lexeme: Lexeme | None = None) -> RuleMistake:
        return RuleMistake(PARSE_ERROR, message, self.source, (lexeme or self.peek()).at)

"""What is wrong with the text of an expression, and where: the one exception of parsing."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression that does not follow the language. A `ValueError`, so that pydantic reports it with its place."""

    def __init__(self, sentence: str, position: int) -> None:
        super().__init__(f"{sentence} (at character {position + 1})")
        self.sentence = sentence
        self.position = position
        """Counted from 0."""

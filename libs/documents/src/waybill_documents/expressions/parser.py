"""Parses words and signs into the tree of an expression, by the grammar below. `compiler.py` makes the tree run.

either     = both { "or" both }
both       = negation { "and" negation }
negation   = "not" negation | comparison
comparison = sum [ ( "==" | "!=" ) sum [ "±" sum ] | ( "<" | "<=" | ">" | ">=" ) sum ]
sum        = product { ( "+" | "-" ) product }
product    = factor { ( "*" | "/" ) factor }
factor     = "-" factor | number | text | name | column | name "(" [ either { "," either } ] ")" | "(" either ")"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from difflib import get_close_matches

from waybill_documents.expressions.functions import FUNCTIONS
from waybill_documents.expressions.nodes import (
    Both,
    Call,
    Chain,
    Compare,
    Constant,
    Either,
    Name,
    Negative,
    Node,
    Not,
    Operator,
    Sign,
    TableColumn,
)
from waybill_documents.expressions.numbers import MOST_DIGITS
from waybill_documents.expressions.tokens import ExpressionError, Token, tokens
from waybill_documents.messages import DocumentMessage

LONGEST = 500
"""Characters of an expression. Longer ones are better written as several computed values."""
DEEPEST = 50
"""Brackets, functions and negations inside each other. The limit keeps us clear of Python's own recursion limit."""

WORDS = frozenset({"and", "or", "not"})
"""Words of the language, which cannot be names."""

_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_COMPARISONS: dict[str, Operator] = {"==": "==", "!=": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_SUMS: dict[str, Sign] = {"+": "+", "-": "-"}
_PRODUCTS: dict[str, Sign] = {"*": "*", "/": "/"}


def parse(text: str) -> Node:
    """The tree of an expression. Raises `ExpressionError` if the text is not one."""
    if len(text) > LONGEST:
        raise ExpressionError(DocumentMessage("expression.too_long", most=LONGEST, characters=len(text)), LONGEST)
    return _Parser(tokens(text)).whole()


class _Parser:
    def __init__(self, found: list[Token]) -> None:
        self._tokens = found
        self._index = 0
        self._depth = 0

    def whole(self) -> Node:
        if self._next().sort == "end":
            raise ExpressionError(DocumentMessage("expression.empty"), 0)
        node = self._either()
        if self._next().sort != "end":
            raise self._unexpected()
        return node

    def _next(self) -> Token:
        return self._tokens[self._index]

    def _take(self) -> Token:
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _take_if(self, sort: str, *texts: str) -> Token | None:
        return self._take() if self._next().sort == sort and self._next().text in texts else None

    @contextmanager
    def _deeper(self) -> Iterator[None]:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(DocumentMessage("expression.too_deep", most=DEEPEST), self._next().position)
        yield
        self._depth -= 1

    def _unexpected(self) -> ExpressionError:
        token = self._next()
        if token.sort == "end":
            why = DocumentMessage("expression.unfinished")
        elif token.text == "±":
            why = DocumentMessage("expression.tolerance")
        elif token.text in _COMPARISONS:
            why = DocumentMessage("expression.two_comparisons")
        elif token.text == ")":
            why = DocumentMessage("expression.closing_bracket")
        elif token.text == ",":
            why = DocumentMessage("expression.comma")
        else:
            shown = f"'{token.text}'" if token.sort == "text" else token.text
            why = DocumentMessage("expression.unexpected", token=shown)
        return ExpressionError(why, token.position)

    def _either(self) -> Node:
        return self._joined("or", self._both, Either)

    def _both(self) -> Node:
        return self._joined("and", self._negation, Both)

    def _joined(self, word: str, part: Callable[[], Node], join: type[Both | Either]) -> Node:
        first = part()
        parts = [first]
        while self._take_if("name", word):
            parts.append(part())
        return join(first.position, tuple(parts)) if len(parts) > 1 else first

    def _negation(self) -> Node:
        if token := self._take_if("name", "not"):
            with self._deeper():
                return Not(token.position, self._negation())
        return self._comparison()

    def _comparison(self) -> Node:
        left = self._sum()
        operator = self._take_if("sign", *_COMPARISONS)
        if operator is None:
            return left
        right = self._sum()
        tolerance = None
        if operator.text in {"==", "!="} and self._take_if("sign", "±"):
            tolerance = self._sum()
        return Compare(left.position, left, _COMPARISONS[operator.text], right, tolerance)

    def _sum(self) -> Node:
        return self._chain(_SUMS, self._product)

    def _product(self) -> Node:
        return self._chain(_PRODUCTS, self._factor)

    def _chain(self, signs: dict[str, Sign], operand: Callable[[], Node]) -> Node:
        first = operand()
        rest: list[tuple[Sign, Node]] = []
        while sign := self._take_if("sign", *signs):
            rest.append((signs[sign.text], operand()))
        return Chain(first.position, first, tuple(rest)) if rest else first

    def _factor(self) -> Node:
        token = self._next()
        if token.sort == "number":
            return self._number(self._take())
        if token.sort == "text":
            return Constant(token.position, self._take().text)
        if token.sort == "name" and token.text not in WORDS:
            return self._name_or_call(self._take())
        if self._take_if("sign", "-"):
            with self._deeper():
                return Negative(token.position, self._factor())
        if self._take_if("sign", "("):
            with self._deeper():
                node = self._either()
            self._close()
            return node
        raise self._unexpected()

    def _close(self) -> None:
        if not self._take_if("sign", ")"):
            raise (
                ExpressionError(DocumentMessage("expression.open_bracket"), self._next().position)
                if (self._next().sort == "end")
                else self._unexpected()
            )

    def _number(self, token: Token) -> Node:
        if len(token.text) > MOST_DIGITS:
            raise ExpressionError(DocumentMessage("expression.long_number", most=MOST_DIGITS), token.position)
        return Constant(token.position, Decimal(token.text))

    def _name_or_call(self, token: Token) -> Node:
        if self._take_if("sign", "("):
            return self._call(token)
        parts = token.text.split(".")
        if len(parts) > 2:
            raise ExpressionError(DocumentMessage("expression.too_many_dots", name=token.text), token.position)
        for part in parts:
            if part in WORDS or not _PLAIN_NAME.fullmatch(part):
                raise ExpressionError(DocumentMessage("expression.not_a_name", name=token.text), token.position)
        return Name(token.position, parts[0]) if len(parts) == 1 else TableColumn(token.position, parts[0], parts[1])

    def _call(self, token: Token) -> Node:
        function = FUNCTIONS.get(token.text)
        if function is None:
            near = get_close_matches(token.text.lower(), FUNCTIONS, n=1)
            unknown = DocumentMessage("expression.unknown_function", name=token.text, meant=near[0] if near else None)
            raise ExpressionError(unknown, token.position)
        arguments: list[Node] = []
        with self._deeper():
            if not self._take_if("sign", ")"):
                arguments.append(self._either())
                while self._take_if("sign", ","):
                    arguments.append(self._either())
                self._close()
        if not function.accepts(len(arguments)):
            raise ExpressionError(
                DocumentMessage("expression.signature", name=token.text, signature=function.signature), token.position
            )
        return Call(token.position, token.text, tuple(arguments))

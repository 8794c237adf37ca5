"""The functions of the expression language, in one table that parsing, checking and the documentation use.

No function fails. For a value it cannot handle, it returns an empty value. Mistakes of a mapping (a pattern, a date
format, the number of values) are refused when the mapping is loaded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import Any

from waybill_documents.expressions import columns, numbers, text_functions
from waybill_documents.expressions.scope import Scope

Run = Callable[[Scope], Any]
"""A compiled part of an expression."""


class Kind(StrEnum):
    """What a function takes or returns. From `PATTERN` on, they are texts in quotes."""

    NUMBER = "number"
    TEXT = "text"
    DATE = "date"
    TRUTH = "condition"
    ANY = "value"
    COLUMN = "column"
    TABLE = "table"
    PATTERN = "pattern"
    FORMAT = "date format"
    LOOKUP = "look-up"
    CARRYING = "table with carried sums"
    TEMPLATE = "replacement"


N, T, D, C, ANY = Kind.NUMBER, Kind.TEXT, Kind.DATE, Kind.TRUTH, Kind.ANY


@dataclass(frozen=True, slots=True)
class Function:
    """One function: its signature, parameters, result, documentation and implementation."""

    signature: str
    """As in `round(x, [places])`. Optional parameters are in brackets, repeated ones are followed by dots."""
    takes: tuple[Kind, ...]
    gives: Kind
    """`ANY` means the kind of its arguments."""
    implementation: Callable[..., Any]
    """Called with the values; with the scope and the compiled arguments if it is `lazy`."""
    _: KW_ONLY
    doc: str
    optional: int = 0
    """How many of the last parameters may be left out."""
    repeats: bool = False
    """Whether the last parameter may be given any number of times."""
    lazy: bool = False

    @property
    def name(self) -> str:
        """The name, without the parameters."""
        return self.signature.partition("(")[0]

    @property
    def least(self) -> int:
        """The fewest values it takes."""
        return len(self.takes) - self.optional

    @property
    def most(self) -> int | None:
        """The most values it takes; None for any number."""
        return None if self.repeats else len(self.takes)

    def accepts(self, count: int) -> bool:
        """Whether it can be called with so many values."""
        return self.least <= count and (self.most is None or count <= self.most)

    def parameter(self, index: int) -> Kind:
        """What it takes at this position."""
        return self.takes[min(index, len(self.takes) - 1)]


def _if(scope: Scope, condition: Run, then: Run, otherwise: Run) -> Any:
    return then(scope) if condition(scope) is True else otherwise(scope)


def _coalesce(scope: Scope, *alternatives: Run) -> Any:
    missed = len(scope.misses)
    for alternative in alternatives:
        value = alternative(scope)
        if not text_functions.empty(value):
            # The mapping handles a text that a look-up lacks, so there is nothing to report.
            del scope.misses[missed:]
            return value
    return None


def _empty(scope: Scope, value: Run) -> bool:
    missed = len(scope.misses)
    answer = text_functions.empty(value(scope))
    del scope.misses[missed:]
    return answer


def _lookup(scope: Scope, lookup: Run, text: Run) -> str | None:
    wanted = text_functions.as_text(text(scope))
    return scope.look_up(lookup(scope), wanted) if wanted else None


def _read_number(scope: Scope, text: Run) -> Any:
    value = text(scope)
    return scope.read(value, "decimal") if isinstance(value, str) else numbers.number(value)


def _read_date(scope: Scope, text: Run) -> Any:
    value = text(scope)
    return scope.read(value, "date") if isinstance(value, str) else text_functions.as_date(value)


def _carried(scope: Scope, table: Run) -> bool | None:
    return scope.carried.get(table(scope))


def _spread(scope: Scope, whole: Run, column: Run, places: Run | None = None) -> Any:
    amount, weights = whole(scope), column(scope)
    to = 2 if places is None else places(scope)
    # The scope keeps the column alive as long as its memory, so its identity is a safe key.
    key = f"spread {amount} {id(weights)} {to}"
    if key not in scope.memory:
        scope.memory[key] = columns.shares(amount, weights, to)
    dealt = scope.memory[key]
    return dealt[scope.index] if scope.index is not None and scope.index < len(dealt) else None


# fmt: off
_TABLE = (
    # Numbers
    Function("round(x, [places])", (N, N), N, numbers.rounded, optional=1,
             doc="`x` rounded half up to that many decimals (0 if not given, at most 30)."),
    Function("abs(x)", (N,), N, numbers.absolute,
             doc="`x` without its sign."),
    Function("precision(x)", (N,), N, numbers.precision,
             doc="The value of the last printed digit of `x`: 1 for `37.500`, 0.01 for `37.500,00`."),
    Function("number(text)", (ANY,), N, text_functions.as_number,
             doc="The number in a text such as `-1234.50`: a decimal point, no grouping. Empty for any other text."),
    Function("read_number(text)", (ANY,), N, _read_number, lazy=True,
             doc="The number in a text as the document prints it, by the mapping's locale: `1.234,50` in German. A text"
                 " that is not a number is a finding."),
    Function("read_date(text)", (ANY,), D, _read_date, lazy=True,
             doc="The date in a text as the document prints it, by the mapping's locale: `7. Mai 2014` in German. A"
                 " text that is not a date is a finding."),
    Function("min(a, ...)", (ANY,), ANY, columns.smallest, repeats=True,
             doc="The smallest of several values, or of a column. Empty ones do not count."),
    Function("max(a, ...)", (ANY,), ANY, columns.largest, repeats=True,
             doc="The largest of several values, or of a column. Empty ones do not count."),
    # Columns and tables
    Function("sum(column)", (Kind.COLUMN,), N, columns.total,
             doc="The sum of a column. Empty cells do not count; without any other, it is 0."),
    Function("spread(x, column, [places])", (N, Kind.COLUMN, N), N, _spread, optional=1, lazy=True,
             doc="This row's share of `x`, in proportion to a column of its own table, rounded to that many decimals"
                 " (2 if not given). The shares of all rows add up to `x`."),
    Function("count(table)", (Kind.TABLE,), N, columns.count,
             doc="The number of rows of a table, or of the cells of a column that are not empty."),
    Function("first(column)", (Kind.COLUMN,), ANY, columns.first,
             doc="The first value of a column that is not empty."),
    Function("last(column)", (Kind.COLUMN,), ANY, columns.last,
             doc="The last value of a column that is not empty."),
    Function("running(column)", (Kind.COLUMN,), C, columns.running,
             doc="Whether a column is 1, 2, 3, ... without gaps. Empty cells do not count."),
    Function("unique(column)", (Kind.COLUMN,), C, columns.unique,
             doc="Whether no value occurs in a column twice. Empty cells do not count."),
    Function("carried('table')", (Kind.CARRYING,), C, _carried, lazy=True,
             doc="Whether the sums carried from page to page match the rows between them, and no page lacks one. Empty,"
                 " so that a check does not apply, if all rows are on one page and no sum is carried."),
    # Choices
    Function("if(condition, a, b)", (C, ANY, ANY), ANY, _if, lazy=True,
             doc="`a` if the condition holds, otherwise `b`."),
    Function("coalesce(a, ...)", (ANY,), ANY, _coalesce, repeats=True, lazy=True,
             doc="The first of the values that is not empty."),
    Function("empty(x)", (ANY,), C, _empty, lazy=True,
             doc="Whether there is no value, or a text without a character."),
    Function("lookup('name', text)", (Kind.LOOKUP, ANY), T, _lookup, lazy=True,
             doc="The value that a look-up of the mapping has for the text; case does not matter. A missing text is a"
                 " finding."),
    # Texts
    Function("text(x)", (ANY,), T, text_functions.as_text,
             doc="`x` as a text: `37500.00`, `2025-08-07`."),
    Function("concat(a, ...)", (ANY,), T, text_functions.concat, repeats=True,
             doc="The values one after the other. Empty ones add nothing."),
    Function("upper(text)", (ANY,), T, text_functions.upper,
             doc="In capitals."),
    Function("lower(text)", (ANY,), T, text_functions.lower,
             doc="In small letters."),
    Function("trim(text)", (ANY,), T, text_functions.trim,
             doc="Without spaces at either end."),
    Function("digits(text)", (ANY,), T, text_functions.digits,
             doc="Only the digits 0 to 9."),
    Function("pad(text, length, fill)", (ANY, N, T), T, text_functions.pad,
             doc="The text, filled up from the left to a length (at most 1,000) with a character."),
    Function("left(text, n)", (ANY, N), T, text_functions.left,
             doc="The first `n` characters."),
    Function("right(text, n)", (ANY, N), T, text_functions.right,
             doc="The last `n` characters."),
    Function("contains(text, part)", (ANY, ANY), C, text_functions.contains,
             doc="Whether the text contains the part. Case does not matter."),
    Function("matches(text, 'pattern')", (ANY, Kind.PATTERN), C, text_functions.matches,
             doc="Whether the RE2 pattern is found anywhere in the text; `^` and `$` are its ends."),
    Function("replace(text, 'pattern', 'by')", (ANY, Kind.PATTERN, Kind.TEMPLATE), T, text_functions.replace,
             doc="The text with all matches of the RE2 pattern replaced; `\\1` to `\\9` are its groups. A text without"
                 " a match stays as it is; to pick a part of a text, use `extract`."),
    Function("extract(text, 'pattern')", (ANY, Kind.PATTERN), T, text_functions.extract,
             doc="The first match of the RE2 pattern, or its first group if it has one. Empty if there is no match."),
    Function("date(value, 'format')", (D, Kind.FORMAT), T, text_functions.date_text,
             doc="A date as a text, as in `date(issued, 'yyyy-MM-dd')`. Months have English names."),
)
# fmt: on

FUNCTIONS: dict[str, Function] = {function.name: function for function in _TABLE}
"""All functions by name, in the order of the documentation."""

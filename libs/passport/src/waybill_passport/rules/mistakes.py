"""What can be wrong with rules: a `RuleMistake` in the source, or a `RuleFailure` while they are evaluated."""

from __future__ import annotations

import re
from collections.abc import Iterable

PARSE_ERROR = "RULE_PARSE_ERROR"
TYPE_ERROR = "RULE_TYPE_ERROR"
CYCLE_DETECTED = "RULE_CYCLE_DETECTED"

DIVISION_BY_ZERO = "DIVISION_BY_ZERO"
UNIT_MISMATCH = "UNIT_MISMATCH"
ASSERTION_FAILED = "ASSERTION_FAILED"
MISSING_FACT = "MISSING_FACT"
FACT_TYPE_MISMATCH = "FACT_TYPE_MISMATCH"
NUMBER_TOO_LARGE = "NUMBER_TOO_LARGE"
VALUE_TOO_LARGE = "VALUE_TOO_LARGE"
OUT_OF_FUEL = "OUT_OF_FUEL"

FAILURES = (
    DIVISION_BY_ZERO,
    UNIT_MISMATCH,
    ASSERTION_FAILED,
    MISSING_FACT,
    FACT_TYPE_MISMATCH,
    NUMBER_TOO_LARGE,
    VALUE_TOO_LARGE,
    OUT_OF_FUEL,
)

_WINDOW = 100
_MARKED = re.compile(r'[A-Za-z_][A-Za-z0-9_]*|[0-9]+(?:\.[0-9]+)?|"[^"\n]*"?|->|\|\||&&|[=!<>]=|.')


class RuleMistake(Exception):
    """The source is no rule package. `str()` shows the line with a caret below the place."""

    def __init__(self, code: str, message: str, source: str, at: int) -> None:
        at = min(at, len(source))
        begin = source.rfind("\n", 0, at) + 1
        self.code = code
        self.message = message
        self.line = source.count("\n", 0, begin) + 1
        self.column = at - begin + 1
        self._shown = _shown(source, begin, at, self.line)
        super().__init__(code, message, self.line, self.column)

    def __str__(self) -> str:
        return f"{self.code}, line {self.line}, column {self.column}: {self.message}\n{self._shown}"


def _shown(source: str, begin: int, at: int, line: int) -> str:
    end = source.find("\n", at)
    text = source[begin : end if end >= 0 else len(source)]
    column = at - begin
    cut = max(0, column - _WINDOW // 2) if len(text) > _WINDOW else 0
    found = _MARKED.match(text, column)
    width = max(1, min(len(found[0]) if found else 1, _WINDOW // 2))
    part = "".join(each if each.isprintable() else " " for each in text[cut : cut + _WINDOW])
    number = str(line)
    return f"  {number} | {part}\n  {' ' * len(number)} | {' ' * (column - cut)}{'^' * width}"


class RuleFailure(Exception):
    """The rules cannot be evaluated over these facts: which field, in which line, and why.

    `reason` is the code that the rules themselves gave, in `assert` and `requireSome`; otherwise it is empty.
    """

    def __init__(self, code: str, message: str, path: str, line: int, reason: str = "") -> None:
        self.code = code
        self.message = message
        self.path = path
        self.line = line
        self.reason = reason
        super().__init__(code, message, path, line, reason)

    def __str__(self) -> str:
        place = f"in {self.path}, line {self.line}" if self.path else f"in line {self.line}"
        return f"{self.code} {place}: {self.reason + ': ' if self.reason else ''}{self.message}"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with the known name that is nearest to a mistyped one, or nothing if none is near."""
    nearest = min(((_distance(name, each), each) for each in known if abs(len(name) - len(each)) < 4), default=None)
    if nearest is None or nearest[0] > max(1, len(name) // 3):
        return ""
    return f" Did you mean '{nearest[1]}'?"


def _distance(left: str, right: str) -> int:
    """How many letters one has to add, drop, change or swap with their neighbour. Case counts for nothing."""
    left, right = left[:80].lower(), right[:80].lower()
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, start=1):
        following = [i]
        for j, b in enumerate(right, start=1):
            best = min(row[j] + 1, following[j - 1] + 1, row[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, before[j - 2] + 1)
            following.append(best)
        before, row = row, following
    return row[-1]

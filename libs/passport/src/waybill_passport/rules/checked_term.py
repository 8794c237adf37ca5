"""A checked expression: its type, and the function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from waybill_passport.rules.machine import Machine, Pair
from waybill_passport.rules.types import RuleType

Run = Callable[[Machine], Pair]


class CheckedTerm(NamedTuple):
    """What the checker makes of a term. It is made once, when a package is loaded."""

    type: RuleType
    run: Run
    literal: str | None = None
    """The text, if the term is a text literal."""


class CheckedField(NamedTuple):
    """A field that can be evaluated: how many values its `let`s and parameters need, and its expression."""

    slots: int
    run: Run

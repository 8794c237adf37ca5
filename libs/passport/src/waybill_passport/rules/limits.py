"""The bounds of the rule language. Whatever somebody writes, reading and evaluating it stays small.

The bounds are part of the language: a package that was accepted once is accepted by every later version, so they may
only grow.
"""

from __future__ import annotations

SOURCE = 262_144
"""Characters of a rule package."""
FIELDS = 1_000
"""Fields of a rule package."""
TESTS = 1_000
"""Examples and properties of a rule package."""
CASES = 10_000
"""Generated cases of one property."""
NESTING = 50
"""How deep the source may be nested. Each level costs the parser four frames of Python's stack."""
TREE = 80
"""How deep the tree of an expression may be. Each level costs up to four frames."""
TYPE_NESTING = 12
TYPE_PARTS = 128
"""Types that one type consists of. Values can share parts, so a small tree could otherwise have an enormous type."""
FACT_NESTING = 64
NAME = 64
"""Characters of a name."""
PATH = 256
"""Characters of a field's path."""
LITERAL = 4_000
"""Characters of a text that is written in the rules."""
TEXT = 16_384
"""Characters of a text while rules are evaluated."""
ITEMS = 100_000
"""Items of a list or map while rules are evaluated."""
SCALE = 18
"""Decimal places of a Dec."""
QUANTITY_SCALE = 6
"""Decimal places of every Qty."""
DIGITS = 38
"""Digits of a Dec or Qty, decimal places included."""
INTEGER = 9_007_199_254_740_991
"""The largest Int: 2^53 - 1, the largest integer that canonical JSON (RFC 8785) may write."""
PARAMETERS = 16
"""Generated values of a property, and parameters of a function."""

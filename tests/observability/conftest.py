"""Fixtures of other folders that these tests use, too."""

from __future__ import annotations

from endtoend.conftest import customer, make_stack
from support.command_line import bare

__all__ = ["bare", "customer", "make_stack"]

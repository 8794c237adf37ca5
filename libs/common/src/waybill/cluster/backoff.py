"""How long to wait before the next try: longer after each failure, up to a bound, and never in step with others."""

from __future__ import annotations

import random


class Backoff:
    def __init__(self, first: float = 0.5, most: float = 30.0) -> None:
        self._first = first
        self._most = most
        self._failures = 0

    def reset(self) -> None:
        """It went well."""
        self._failures = 0

    def next(self, at_least: float | None = None) -> float:
        """Seconds to wait after another failure; `at_least` is what the other side asked for.

        Half of it is chance: operators and watches that lost the same server must not come back all at once.
        """
        ceiling = min(self._first * 2.0 ** min(self._failures, 30), self._most)
        self._failures += 1
        return max(ceiling * (0.5 + random.random() / 2), min(at_least or 0.0, self._most))  # noqa: S311 - no secret

"""The output of `waybill up`: every line starts with the name of the service that wrote it."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TextIO

OURSELVES = "waybill"
_COLOURS = ("36", "35", "33", "34", "32")  # cyan, magenta, yellow, blue, green
_BOLD_GREEN, _BOLD_RED = "1;32", "1;31"


class Screen:
    """Writes whole lines. It uses colours only on a terminal, and not if `NO_COLOR` is set."""

    def __init__(self, names: tuple[str, ...], stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stdout
        self._width = max(len(name) for name in (OURSELVES, *names))
        self._colours = dict(zip(names, _COLOURS, strict=False))
        self.coloured = self._stream.isatty() and not os.environ.get("NO_COLOR")

    def line(self, name: str, text: str) -> None:
        """One line of a service's output."""
        self._write(name, text, self._colours.get(name))

    def say(self, text: str) -> None:
        """A line of our own."""
        self.line(OURSELVES, text)

    def good(self, text: str) -> None:
        """Good news, in bold green."""
        self.line(OURSELVES, self._paint(text, _BOLD_GREEN))

    def bad(self, text: str) -> None:
        """What went wrong and what to do about it, in bold red."""
        for each in text.splitlines():
            self.line(OURSELVES, self._paint(each, _BOLD_RED))

    def _write(self, name: str, text: str, colour: str | None) -> None:
        prefix = self._paint(f"{name:<{self._width}} |", colour or "2")
        # A reader that went away (`waybill up | head`) must not stop the services half-way.
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(f"{prefix} {text}\n")
            self._stream.flush()

    def _paint(self, text: str, colour: str) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self.coloured else text

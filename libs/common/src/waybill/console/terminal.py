"""Prints data to standard output, and hints and errors to standard error.

Text from a job (a message, a tenant's name, a payload) goes through `safe`. It may contain control characters that move
the cursor, change colours or fake lines; none of them reaches the terminal.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import typer
from rich.console import Console
from rich.text import Text

UNLIMITED = 100_000
"""The width of a pipe or a file, which get whole lines."""


def output() -> Console:
    """The console for data."""
    return _console(stderr=False)


def remarks() -> Console:
    """The console for hints and errors."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # No markup, emoji codes or highlighting, so that text is printed as it is. The console is created each time,
    # because tests and pagers replace the streams.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else UNLIMITED
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def safe(value: object) -> str:
    """Replace unprintable characters (control, direction-changing, invisible) with escapes."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def styled(value: object, style: str = "") -> Text:
    """Safe text for a table or a line."""
    return Text(safe(value), style=style)


def print_json(value: Any) -> None:
    """Print one JSON document, in ASCII, so that nothing in it can affect a terminal."""
    # Imported here, so that commands without JSON start faster.
    from pydantic import TypeAdapter

    plain = TypeAdapter(Any).dump_python(value, mode="json")
    typer.echo(json.dumps(plain, indent=2, ensure_ascii=True))


def print_line(line: Text | str = "") -> None:
    """Print a line of data without wrapping it."""
    output().print(line, soft_wrap=True)


def remark(text: str, style: str = "dim") -> None:
    """Print a hint for the person at the terminal."""
    remarks().print(styled(text, style), soft_wrap=True)


def complain(text: str) -> None:
    """Print what went wrong and what to do about it."""
    lines = text.splitlines() or [""]
    for line in lines:
        remarks().print(styled(line, "red"), soft_wrap=True)

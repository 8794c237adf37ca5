"""Where output goes: data to standard output, remarks and errors to standard error.

Whatever came from a job (a message, a tenant's name, a payload) passes through `safe`. It could hold control
characters that move the cursor, change colours or fake lines; none of them reaches the terminal.
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
"""Columns, where nobody looks: a pipe or a file gets whole lines."""


def output() -> Console:
    """For data."""
    return _console(stderr=False)


def remarks() -> Console:
    """For everything a pipe should not see."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    # No markup, no emoji codes, no highlighting: text is only ever what it says. Made anew each time, because
    # tests and pagers exchange the streams under us.
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() or os.environ.get("COLUMNS") else UNLIMITED
    return Console(stderr=stderr, markup=False, emoji=False, highlight=False, width=width)


def safe(value: object) -> str:
    """Text with everything unprintable (control, direction-changing, invisible) written out as an escape."""
    text = str(value)
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
        for character in text
    )


def styled(value: object, style: str = "") -> Text:
    """A safe piece of text for a table or a line."""
    return Text(safe(value), style=style)


def print_json(value: Any) -> None:
    """Machine-readable output: one document, ASCII only, so that nothing in it can act on a terminal."""
    # Here, so that commands that print no JSON start faster.
    from pydantic import TypeAdapter

    plain = TypeAdapter(Any).dump_python(value, mode="json")
    typer.echo(json.dumps(plain, indent=2, ensure_ascii=True))


def print_line(line: Text | str = "") -> None:
    """A line of data, never wrapped by us."""
    output().print(line, soft_wrap=True)


def remark(text: str, style: str = "dim") -> None:
    """Something for the person in front of the screen: a hint, a next step."""
    remarks().print(styled(text, style), soft_wrap=True)


def complain(text: str) -> None:
    """What went wrong, and what to do about it."""
    lines = text.splitlines() or [""]
    for line in lines:
        remarks().print(styled(line, "red"), soft_wrap=True)

"""Describes exceptions for a log, without what documents and rows contain.

The message of an exception is written by whoever raised it, and is often about data: a parser quotes the text that it
cannot read, Postgres quotes the row, pydantic the input. So a log has the places and the type of an exception, and its
message only if that can be about nothing but code, addresses or the operating system.

Parsers use this module too, so it imports nothing that is large.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator, Mapping, Sequence
from socket import gaierror
from traceback import extract_tb
from typing import Any

from waybill.redaction import redact_text

_MOST_FRAMES = 50
_MOST_EXCEPTIONS = 10
_LONGEST_MESSAGE = 500
_ELSEWHERE = "frames_elsewhere"
"""The attribute of an exception that was raised in another process. A pickled exception has no traceback."""

_ABOUT_CODE = (AttributeError, ImportError, NameError, NotImplementedError, RecursionError, TypeError)
"""Their messages name types, attributes and modules."""
_ABOUT_ADDRESSES = (ConnectionError, TimeoutError, gaierror)

Frame = Mapping[str, Any]
Told = Mapping[str, Any]
"""One exception: `exc_type`, `exc_value` and `frames`."""


def told(error: BaseException) -> list[Told]:
    """The exception and those that led to it, the last one first."""
    found: list[Told] = []
    for each in _chain(error):
        frames = [*_frames(each), *getattr(each, _ELSEWHERE, ())][-_MOST_FRAMES:]
        found.append({"exc_type": type(each).__qualname__, "exc_value": safe_message(each), "frames": frames})
    return found


def as_text(exceptions: Sequence[Told]) -> str:
    """The same for a person at a terminal, in the form of a traceback."""
    return "\n\n".join(_block(one) for one in reversed(exceptions))


def carry_frames(error: BaseException) -> None:
    """Make an exception remember where it was raised, because it is about to be sent to another process."""
    setattr(error, _ELSEWHERE, _frames(error))


def safe_message(error: BaseException) -> str:
    """The exception's message, or how long the message is that we do not show."""
    if (state := getattr(error, "sqlstate", None)) is not None:
        return _of_postgres(error, str(state))
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - whoever logs an error must not meet a second one
        return "(a message that cannot be shown)"
    if isinstance(error, (*_ABOUT_CODE, *_ABOUT_ADDRESSES)):
        return redact_text(message)[:_LONGEST_MESSAGE]
    if isinstance(error, OSError) and error.strerror:
        return error.strerror  # without the file's name
    return f"(a message of {len(message)} characters, which may quote a document)" if message else ""


def _of_postgres(error: BaseException, state: str) -> str:
    """Postgres quotes values in its messages, and whole rows in their details. Names of the schema are ours."""
    names = ("schema_name", "table_name", "column_name", "data_type_name", "constraint_name")
    known = {name.removesuffix("_name"): getattr(error, name, None) for name in names}
    return " ".join([f"sqlstate={state}", *(f"{name}={value}" for name, value in known.items() if value)])


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting and len(seen) < _MOST_EXCEPTIONS:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if isinstance(each, BaseExceptionGroup):
            waiting += reversed(each.exceptions)
        waiting.append(each.__cause__ or (None if each.__suppress_context__ else each.__context__))


def _frames(error: BaseException) -> list[Frame]:
    found = extract_tb(error.__traceback__)[-_MOST_FRAMES:]
    return [{"filename": frame.filename, "lineno": frame.lineno, "name": frame.name} for frame in found]


def _block(one: Told) -> str:
    lines = ["Traceback (most recent call last):"] if one["frames"] else []
    for frame in one["frames"]:
        lines.append(f'  File "{frame["filename"]}", line {frame["lineno"]}, in {frame["name"]}')
        if source := linecache.getline(frame["filename"], frame["lineno"] or 0).strip():
            lines.append(f"    {source}")
    lines.append(f"{one['exc_type']}: {one['exc_value']}" if one["exc_value"] else one["exc_type"])
    return "\n".join(lines)

"""What a log line says about an exception: one line if it was to be expected, a traceback if we have a bug.

Refusals, dependencies that fail and back-pressure are everyday life. A line about them has the code of the taxonomy,
the message's key, and those parameters that are certainly not from a document. Everything else is a surprise: it keeps
its traceback (`waybill.tracebacks`), once, however many parts of the program log it on its way up.
"""

from __future__ import annotations

import errno
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from socket import gaierror
from types import TracebackType
from typing import Any

import structlog
from structlog.typing import EventDict, WrappedLogger

from waybill.errors import MEANINGS, Code, WaybillError
from waybill.failures import Failure, classify, is_database_outage
from waybill.messages import Message, languages
from waybill.tracebacks import Told, as_text, told

_SAFE_PARAMS = frozenset(
    {"attempts", "count", "kilobytes", "latest", "line", "megabytes", "most", "page", "pages", "revision", "seconds"}
)
"""Parameters that count or place something. A parameter with any other name may be a value of a document."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LOGGED = "waybill_logged"


def is_expected(error: BaseException) -> bool:
    """Whether an error belongs to everyday life and is no bug: those of the taxonomy, outages, and full disks."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, WaybillError | ConnectionError | TimeoutError | gaierror):
        return True
    return is_database_outage(error) or (isinstance(error, OSError) and error.errno in _FULL)


def failure_fields(failure: Failure) -> dict[str, Any]:
    """The fields of a line about a failure: nothing in them is from a document."""
    fields: dict[str, Any] = {"code": failure.code.value, "error": _sentence(failure)}
    if failure.key is not None:
        fields["key"] = failure.key
    if safe := _safe(failure.params):
        fields["params"] = safe
    findings = (failure.detail or {}).get("findings_total")
    if isinstance(findings, int):
        fields["findings"] = findings
    if failure.retry_after is not None:
        fields["retry_after"] = failure.retry_after
    return fields


def error_words(error: BaseException) -> str:
    """One sentence about any exception, for a line that goes on to say what happens now."""
    return _sentence(classify(error)) if is_expected(error) else type(error).__qualname__


def describe_exception(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """Replace `exc_info` by the fields of an expected error, or by the traceback of a surprise."""
    error = _exception(event.pop("exc_info", None))
    if error is None:
        return event
    if is_expected(error):
        for name, value in failure_fields(classify(error)).items():
            event.setdefault(name, value)
    elif _is_first(error, event):
        event["exception"] = told(error)
    else:
        event["exception_type"] = type(error).__qualname__
    return event


def exception_as_text(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """For terminals: the traceback as lines."""
    found: list[Told] | str | None = event.get("exception")
    if isinstance(found, list):
        event["exception"] = as_text(found)
    return event


def log_crashes() -> None:
    """Log what ends the process or one of its threads. Python would print it, with whatever its message contains."""

    def crashed(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, KeyboardInterrupt):
            return
        structlog.get_logger().critical("crashed", exc_info=error.with_traceback(traceback))

    def thread_crashed(arguments: threading.ExceptHookArgs) -> None:
        if arguments.exc_value is not None:
            crashed(arguments.exc_type, arguments.exc_value, arguments.exc_traceback)

    sys.excepthook = crashed
    threading.excepthook = thread_crashed


def _sentence(failure: Failure) -> str:
    """The English sentence with its safe parameters. A sentence without a key of ours may quote a document."""
    if failure.code is Code.DB_UNAVAILABLE:
        return failure.message  # it names the server and what the server answered, and comes from no document
    if failure.key is not None:
        safe = _safe(failure.params)
        shown = {name: safe.get(name, "…") for name in failure.params}
        # Keys of the document library are in no catalogue of ours.
        with suppress(LookupError, ValueError, TypeError):  # a parameter that is a time, which we do not show
            if (said := languages()["en"].tell(Message(failure.key, shown))) is not None:
                return said
    return MEANINGS[failure.code].sentence


def _safe(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name in _SAFE_PARAMS and isinstance(value, int | float)}


def _exception(given: Any) -> BaseException | None:
    if isinstance(given, BaseException):
        return given
    if isinstance(given, tuple):
        return given[1] if len(given) == 3 and isinstance(given[1], BaseException) else None
    return sys.exc_info()[1] if given else None


def _is_first(error: BaseException, event: EventDict) -> bool:
    """Whether no other line has shown its traceback. A line of a library comes here once for each of our handlers."""
    record = event.get("_record")
    line: object = record.created if record is not None else object()
    if getattr(error, _LOGGED, line) != line:
        return False
    with suppress(AttributeError):  # it has slots
        setattr(error, _LOGGED, line)
    return True

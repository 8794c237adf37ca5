"""Logging as a service has it, for a while. It is left as other tests expect it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from waybill.config import CommonSettings
from waybill.log import configure
from waybill.log.handlers import RotatingFile, Stream


@contextmanager
def configured_log(service: str, **changes: Any) -> Iterator[None]:
    level = logging.getLogger().level
    given = {"database_url": "postgresql://u:hunter2@h/d", "log_format": "json", **changes}
    configure(CommonSettings.model_validate(given), service)
    try:
        yield
    finally:
        leave_log(level)


def leave_log(level: int) -> None:
    """Undo what `configure` did."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        if isinstance(handler, Stream | RotatingFile):
            root.removeHandler(handler)
            handler.close()
    root.setLevel(level)
    logging.captureWarnings(False)
    print_plainly()


def print_plainly() -> None:
    """Log as structlog does by default, but with plain tracebacks: a pretty one takes seconds."""
    structlog.reset_defaults()
    *gathering, _ = structlog.get_config()["processors"]
    printer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*gathering, printer])

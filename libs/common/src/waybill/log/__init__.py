"""Logging: an event name and its fields. Our lines and those of all libraries go through one pipeline.

    log = structlog.get_logger()
    with bind_job(job_id=job.id, tenant=job.tenant):
        log.info("claimed", kind=job.kind)

Call `configure` once, right after the settings are loaded. Pass `log_config=None` to uvicorn, or it adds its own
handlers.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Protocol

import structlog
from structlog.contextvars import bound_contextvars
from structlog.typing import EventDict, Processor, WrappedLogger

from waybill.config import ProcessSettings
from waybill.log.exceptions import describe_exception, exception_as_text, failure_fields, log_crashes
from waybill.log.handlers import RotatingFile, Stream
from waybill.log.safety import as_json, plain_values, without_control_characters
from waybill.telemetry import spans

__all__ = ["bind_job", "configure", "enter_job", "failure_fields", "log_crashes"]

# Below these levels, these libraries would flood the log or print SQL parameters.
_AT_LEAST = {
    "sqlalchemy": logging.WARNING,
    "asyncio": logging.INFO,
    "httpcore": logging.INFO,
    "httpx": logging.WARNING,
}


def configure(settings: ProcessSettings, service: str) -> None:
    """Send every line of this process through one pipeline, including those of libraries. It may be called again."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    structlog.configure(
        processors=[*_gathering(service), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        # Modules create their loggers before this runs, and a cached logger would ignore the configuration.
        cache_logger_on_first_use=False,
    )
    _take_over(level)
    handler = Stream(sys.stderr)
    handler.setFormatter(_formatter(service, json=_wants_json(settings), colours=_wants_colours()))
    logging.getLogger().addHandler(handler)
    if settings.log_file is not None:
        _add_file(settings.log_file, settings, service)


@contextmanager
def bind_job(
    *, job_id: object, tenant: str | None = None, worker: object = None, trace_id: str | None = None
) -> Iterator[None]:
    """Add the job to every line that this task and the tasks it starts write inside."""
    fields = {"job_id": job_id, "tenant": tenant, "worker": worker, "trace_id": trace_id}
    with bound_contextvars(**{name: str(value) for name, value in fields.items() if value is not None}):
        yield


class JobFields(Protocol):
    """Something with fields for its log lines."""

    def log_fields(self) -> Mapping[str, str]: ...


_entered: ContextVar[JobFields | None] = ContextVar("waybill_job", default=None)


def enter_job(job: JobFields) -> None:
    """Add the job to every line that this task writes from now on. The task must end with the job.

    A worker starts tens of thousands of jobs per second, and most of them log nothing. So the fields are only computed
    when a line is written.
    """
    _entered.set(job)


def _add_job(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    job = _entered.get()
    if job is not None:
        for name, value in job.log_fields().items():
            event.setdefault(name, value)
    return event


def _add_trace(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    if "trace_id" not in event and (ids := spans.current_ids()) is not None:
        event["trace_id"], event["span_id"] = ids
    return event


def _gathering(service: str) -> list[Processor]:
    """Adds the fields of every line."""

    def add_service(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.setdefault("service", service)
        return event

    return [
        structlog.contextvars.merge_contextvars,
        _add_job,
        _add_trace,
        add_service,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        describe_exception,
    ]


def _formatter(service: str, *, json: bool, colours: bool) -> logging.Formatter:
    rendering: list[Processor]
    if json:
        rendering = [plain_values, structlog.processors.JSONRenderer(serializer=as_json)]
    else:
        console = structlog.dev.ConsoleRenderer(
            colors=colours, sort_keys=False, exception_formatter=structlog.dev.plain_traceback
        )
        rendering = [exception_as_text, plain_values, _without("service"), without_control_characters, console]
    formatter = structlog.stdlib.ProcessorFormatter
    return formatter(
        # uvicorn adds a copy of its message with escape sequences
        foreign_pre_chain=[*_gathering(service), structlog.stdlib.ExtraAdder(), _without("color_message")],
        processors=[
            formatter.remove_processors_meta,
            *rendering,
        ],
    )


def _without(field: str) -> Processor:
    def drop(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
        event.pop(field, None)
        return event

    return drop


def _wants_json(settings: ProcessSettings) -> bool:
    if settings.log_format == "auto":
        return not sys.stderr.isatty()
    return settings.log_format == "json"


def _wants_colours() -> bool:
    # `waybill up` reads from its services through pipes and may still want colours.
    wanted = sys.stderr.isatty() or bool(os.environ.get("FORCE_COLOR"))
    return wanted and not os.environ.get("NO_COLOR")


def _take_over(level: int) -> None:
    """Remove all other handlers. A handler on the root logger would print what we mask."""
    root = logging.getLogger()
    for handler in list(root.handlers):
        root.removeHandler(handler)
        if isinstance(handler, Stream | RotatingFile):
            handler.close()
    root.setLevel(level)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = True
    for name, least in _AT_LEAST.items():
        logging.getLogger(name).setLevel(max(level, least))
    logging.captureWarnings(True)


def _add_file(path: Path, settings: ProcessSettings, service: str) -> None:
    try:
        handler = RotatingFile(path, settings.log_file_max_bytes, settings.log_file_backups)
    except OSError as error:
        # The file is optional, so the service starts without it.
        structlog.get_logger().error(
            "log_file_not_writable", path=path, error=error.strerror, setting="WAYBILL_LOG_FILE"
        )
        return
    handler.setFormatter(_formatter(service, json=True, colours=False))
    logging.getLogger().addHandler(handler)

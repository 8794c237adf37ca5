"""The one error taxonomy: what can go wrong, what it means to a person, and whether trying again helps.

Everything that fails in Waybill ends as one of these codes. Services raise the exceptions below; whatever else
is raised goes through `classify()`, which is the only place that decides "retry or not".
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

import asyncpg
import sqlalchemy.exc


class Code(StrEnum):
    NOT_PDF = "NOT_PDF"
    TOO_LARGE = "TOO_LARGE"
    BAD_MAPPING = "BAD_MAPPING"
    GW_4XX = "GW_4XX"
    GW_5XX = "GW_5XX"
    GW_TIMEOUT = "GW_TIMEOUT"
    IO_ERROR = "IO_ERROR"
    NOT_READY = "NOT_READY"
    EXPIRED = "EXPIRED"
    FORBIDDEN = "FORBIDDEN"
    UNAUTHORIZED = "UNAUTHORIZED"
    NOT_FOUND = "NOT_FOUND"
    CONFLICT = "CONFLICT"
    VALIDATION_ERROR = "VALIDATION_ERROR"
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    RATE_LIMITED = "RATE_LIMITED"
    PARSE_ERROR = "PARSE_ERROR"
    TIMEOUT = "TIMEOUT"
    LLM_ERROR = "LLM_ERROR"
    CANCELLED = "CANCELLED"
    WORKER_CRASHED = "WORKER_CRASHED"
    DB_UNAVAILABLE = "DB_UNAVAILABLE"
    UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Meaning:
    """What a code means wherever it turns up."""

    status: int
    """HTTP status when it is the answer to a request."""
    retryable: bool
    """Whether the same work may succeed when it is tried again."""
    sentence: str
    """One sentence for the person who is waiting."""


MEANINGS: Mapping[Code, Meaning] = {
    Code.NOT_PDF: Meaning(415, False, "This file is not a PDF. Please upload the PDF itself."),
    Code.TOO_LARGE: Meaning(413, False, "This file is too large. Please upload a smaller one."),
    Code.BAD_MAPPING: Meaning(400, False, "This mapping is not known here. Please choose one from the list."),
    Code.GW_4XX: Meaning(422, False, "The converter could not read this document."),
    Code.GW_5XX: Meaning(502, True, "The converter had a problem. We try again by ourselves."),
    Code.GW_TIMEOUT: Meaning(504, True, "The converter took too long. We try again by ourselves."),
    Code.IO_ERROR: Meaning(507, True, "A file could not be read or written. We try again by ourselves."),
    Code.NOT_READY: Meaning(409, False, "The result is not ready yet. Please try again in a moment."),
    Code.EXPIRED: Meaning(404, False, "The result has expired. Please upload the document again."),
    Code.FORBIDDEN: Meaning(403, False, "This is not yours to see or change."),
    Code.UNAUTHORIZED: Meaning(401, False, "Please say who you are: this needs an API key that works."),
    Code.NOT_FOUND: Meaning(404, False, "There is no such thing here."),
    Code.CONFLICT: Meaning(409, False, "This clashes with how things are now. Please reload and try again."),
    Code.VALIDATION_ERROR: Meaning(422, False, "Something in the request is not right."),
    Code.IDEMPOTENCY_CONFLICT: Meaning(409, False, "This Idempotency-Key was used for another request."),
    Code.RATE_LIMITED: Meaning(429, True, "That was a little too fast. Please wait a moment."),
    Code.PARSE_ERROR: Meaning(422, False, "This document could not be understood."),
    Code.TIMEOUT: Meaning(504, True, "This took longer than it may. We try again by ourselves."),
    Code.LLM_ERROR: Meaning(502, True, "The language model had a problem. We try again by ourselves."),
    Code.CANCELLED: Meaning(409, False, "This job was cancelled."),
    Code.WORKER_CRASHED: Meaning(500, True, "The program working on this document crashed."),
    Code.DB_UNAVAILABLE: Meaning(503, True, "The database cannot be reached. We try again by ourselves."),
    Code.UNKNOWN: Meaning(500, True, "Something went wrong on our side."),
}


class WaybillError(Exception):
    """The root of the tree. A subclass names its code; the message defaults to the code's sentence."""

    code: ClassVar[Code] = Code.UNKNOWN

    def __init__(
        self,
        message: str | None = None,
        *,
        detail: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message or MEANINGS[self.code].sentence
        self.detail = dict(detail) if detail else None
        self.retry_after = retry_after
        """Seconds the other side asked us to wait. Waiting for it costs a job no attempt."""
        super().__init__(self.message)


# The document is at fault: trying again cannot help, and no dependency is to blame.


class DocumentFault(WaybillError):
    code = Code.PARSE_ERROR


class NotPdf(DocumentFault):
    code = Code.NOT_PDF


class TooLarge(DocumentFault):
    code = Code.TOO_LARGE


class BadMapping(DocumentFault):
    code = Code.BAD_MAPPING


class GatewayRejected(DocumentFault):
    code = Code.GW_4XX


# Something we lean on is at fault: trying again may help.


class DependencyFault(WaybillError):
    """Feeds the circuit breaker of the kind's dependency, unless the other side said when to come back."""


class GatewayUnavailable(DependencyFault):
    code = Code.GW_5XX


class GatewayTimedOut(DependencyFault):
    code = Code.GW_TIMEOUT


class LanguageModelFailed(DependencyFault):
    code = Code.LLM_ERROR


class DatabaseUnavailable(WaybillError):
    code = Code.DB_UNAVAILABLE


class RateLimited(WaybillError):
    code = Code.RATE_LIMITED


class IoFailure(WaybillError):
    code = Code.IO_ERROR


class StorageFull(IoFailure):
    """No space left: a person has to make room, but the job may wait for it."""


# The request cannot be granted.


class Refused(WaybillError):
    code = Code.VALIDATION_ERROR


class UnsafePath(Refused):
    """A name that would lead outside the folder it belongs to."""


class NotReady(Refused):
    code = Code.NOT_READY


class Expired(Refused):
    code = Code.EXPIRED


class Forbidden(Refused):
    code = Code.FORBIDDEN


class Unauthorized(Refused):
    code = Code.UNAUTHORIZED


class NotFound(Refused):
    code = Code.NOT_FOUND


class Conflict(Refused):
    code = Code.CONFLICT


class IdempotencyConflict(Refused):
    code = Code.IDEMPOTENCY_CONFLICT


# What happens to a job's run.


class RunFault(WaybillError):
    """The run itself ended badly, whatever the document and the dependencies did."""


class TimeLimitExceeded(RunFault):
    code = Code.TIMEOUT


class Cancelled(RunFault):
    code = Code.CANCELLED


class WorkerCrashed(RunFault):
    code = Code.WORKER_CRASHED


class LeaseLost(RunFault):
    """Another worker owns the job now. Nothing this run does may have an effect, not even its failure."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, understood."""

    code: Code
    message: str
    status: int
    retryable: bool
    charged: bool
    """Whether it costs the job an attempt. Outages of our own database and waits asked for by others do not."""
    retry_after: float | None
    detail: dict[str, Any] | None
    of_dependency: bool = False
    """Whether something we lean on failed, and not merely asked us to wait: what its breaker counts."""


def classify(error: BaseException) -> Failure:
    """Understand any exception. Unknown ones are retryable: most surprises pass, and retries are bounded."""
    while isinstance(error, BaseExceptionGroup):  # a task group's: its first error is the one that ended the others
        error = error.exceptions[0]
    known = error if isinstance(error, WaybillError) else _translate(error)
    meaning = MEANINGS[known.code]
    wait = known.retry_after
    if not (isinstance(wait, int | float) and math.isfinite(wait) and wait >= 0):
        wait = None  # a wait that is none must not make the failure free
    return Failure(
        code=known.code,
        message=known.message,
        status=meaning.status,
        retryable=meaning.retryable,
        charged=wait is None and not isinstance(known, DatabaseUnavailable),
        retry_after=wait,
        detail=known.detail,
        of_dependency=wait is None and isinstance(known, DependencyFault),
    )


def is_database_outage(error: BaseException) -> bool:
    """Whether the connection to Postgres failed, rather than a statement on it.

    A bare `ConnectionError` is not one: it may be about anybody. `Database` translates its own.
    """
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_database_outage(error.orig))
    if isinstance(error, sqlalchemy.exc.TimeoutError | DatabaseUnavailable):
        return True
    cause = error.__cause__ if type(error).__module__.startswith("sqlalchemy.dialects") else None
    if cause is not None:
        return is_database_outage(cause)
    if isinstance(error, asyncpg.InterfaceError):
        # The driver's word for our own mistakes as well ("another operation is in progress"), which must be charged.
        return "clos" in str(error)
    if isinstance(error, asyncpg.InternalClientError):
        # The server's last word arrived while we were writing: state 2 is "reading an error".
        return "another operation (2)" in str(error)
    return isinstance(
        error,
        asyncpg.PostgresConnectionError
        | asyncpg.CannotConnectNowError
        | asyncpg.AdminShutdownError
        | asyncpg.CrashShutdownError
        | asyncpg.TooManyConnectionsError
        | asyncpg.DiskFullError
        | asyncpg.ReadOnlySQLTransactionError,  # a failover: this server is a standby now
    )


def _translate(error: BaseException) -> WaybillError:
    detail = {"exception": type(error).__qualname__, "text": str(error)[:2000]}
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFull("The disk is full. We try again by ourselves.", detail=detail)
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return TimeLimitExceeded(detail=detail)
    if is_database_outage(error):
        return DatabaseUnavailable(detail=detail)
    if isinstance(error, OSError):
        return IoFailure(detail=detail)
    return WaybillError(detail=detail)

"""The one error taxonomy: what can go wrong, what it means to a person, and whether a retry can help.

Everything that fails in Waybill ends as one of these codes. Services raise the exceptions below. `classify()` turns any
other exception into one of them; it is the only place that decides whether to retry.
"""

from __future__ import annotations

import asyncio
import errno
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, ClassVar

import asyncpg
import sqlalchemy.exc

from waybill.messages import Message, msg


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
    """What a code means wherever it turns up. Its sentence is `errors.<CODE>` in the catalogues."""

    code: Code
    status: int
    """HTTP status when it is the answer to a request."""
    retryable: bool
    """Whether the same work may succeed when it is tried again."""

    @property
    def message(self) -> Message:
        return Message(f"errors.{self.code}")

    @property
    def sentence(self) -> str:
        """One English sentence for the person who is waiting."""
        return str(self.message)


MEANINGS: Mapping[Code, Meaning] = {
    meaning.code: meaning
    for meaning in (
        Meaning(Code.NOT_PDF, 415, False),
        Meaning(Code.TOO_LARGE, 413, False),
        Meaning(Code.BAD_MAPPING, 400, False),
        Meaning(Code.GW_4XX, 422, False),
        Meaning(Code.GW_5XX, 502, True),
        Meaning(Code.GW_TIMEOUT, 504, True),
        Meaning(Code.IO_ERROR, 507, True),
        Meaning(Code.NOT_READY, 409, False),
        Meaning(Code.EXPIRED, 404, False),
        Meaning(Code.FORBIDDEN, 403, False),
        Meaning(Code.UNAUTHORIZED, 401, False),
        Meaning(Code.NOT_FOUND, 404, False),
        Meaning(Code.CONFLICT, 409, False),
        Meaning(Code.VALIDATION_ERROR, 422, False),
        Meaning(Code.IDEMPOTENCY_CONFLICT, 409, False),
        Meaning(Code.RATE_LIMITED, 429, True),
        Meaning(Code.PARSE_ERROR, 422, False),
        Meaning(Code.TIMEOUT, 504, True),
        Meaning(Code.LLM_ERROR, 502, True),
        Meaning(Code.CANCELLED, 409, False),
        Meaning(Code.WORKER_CRASHED, 500, True),
        Meaning(Code.DB_UNAVAILABLE, 503, True),
        Meaning(Code.UNKNOWN, 500, True),
    )
}


class WaybillError(Exception):
    """The root of the tree. A subclass names its code; without a message, the error says what its code means.

    Give what a reader may meet as a `Message` (`msg("storage.full")`), so that pages can say it in their language. A
    plain string is for operators at the command line, who read English.
    """

    code: ClassVar[Code] = Code.UNKNOWN
    dependency: str | None = None
    """The name of the dependency that failed or asked us to wait, if the error knows it."""

    def __init__(
        self,
        message: str | Message | None = None,
        *,
        detail: Mapping[str, Any] | None = None,
        retry_after: float | None = None,
        dependency: str | None = None,
    ) -> None:
        said = message or MEANINGS[self.code].message
        self.message = str(said)
        """The English sentence."""
        self.key = said.key if isinstance(said, Message) else None
        self.params: dict[str, Any] = dict(said.params) if isinstance(said, Message) else {}
        self.detail = dict(detail) if detail else None
        self.retry_after = retry_after
        """Seconds the other side asked us to wait. Waiting for it costs a job no attempt."""
        if dependency is not None:
            self.dependency = dependency
        super().__init__(self.message)


# The document is at fault: a retry cannot help, and no dependency is to blame.


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


# A dependency is at fault: a retry may help.


class DependencyFault(WaybillError):
    """A dependency failed. Its breaker counts this, unless the other side said when to come back.

    Name the dependency, in a subclass or here (`dependency="mail_server"`). Without a name, the first dependency of the
    job's kind is meant.
    """


class DependencyAway(DependencyFault):
    """Nobody was there to do the work: the connection was refused, the name was not found, the disk is full.

    It says nothing about the document, because no document got that far. So it never costs a job an attempt, and its
    breaker opens sooner than for answers that are wrong.
    """


class GatewayUnavailable(DependencyFault):
    code = Code.GW_5XX
    dependency = "gateway"


class GatewayUnreachable(GatewayUnavailable, DependencyAway):
    """The gateway did not even take the connection."""


class GatewayMistrusted(GatewayUnreachable):
    """Gateway and caller do not have the same secret, or something else answers there. A person has to mend that, and
    jobs wait meanwhile."""


class GatewayTimedOut(DependencyFault):
    code = Code.GW_TIMEOUT
    dependency = "gateway"


class LanguageModelFailed(DependencyFault):
    code = Code.LLM_ERROR
    dependency = "language_model"


class DatabaseUnavailable(WaybillError):
    code = Code.DB_UNAVAILABLE


class RateLimited(WaybillError):
    code = Code.RATE_LIMITED


class IoFailure(WaybillError):
    """Something could not be read or written. By itself it blames nobody: a stored document may be cut off."""

    code = Code.IO_ERROR


class StorageFailed(IoFailure, DependencyFault):
    """The storage as a whole has a problem, whatever it was asked for."""

    dependency = "storage"


class StorageUnreachable(StorageFailed, DependencyAway):
    """The storage did not even take the connection."""


class StorageFull(StorageFailed, DependencyAway):
    """There is no space left. A person has to make room, and the job can wait for that."""


# We refuse the request.


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


# A job's run ended badly.


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
    """What `classify` found out about an exception."""

    code: Code
    message: str
    """The English sentence."""
    status: int
    retryable: bool
    charged: bool
    """Whether it costs the job an attempt. Outages of our own database and waits that others asked for do not, and
    the engine excuses more (`waybill_engine.excuses`)."""
    retry_after: float | None
    detail: dict[str, Any] | None
    """What a job stores about it: what the exception knew, and the message's `key` and `params`."""
    of_dependency: bool = False
    """Whether a dependency failed, and did not merely ask us to wait. Its breaker counts these."""
    away: bool = False
    """Whether the dependency was not even there, so that no document can be to blame."""
    dependency: str | None = None
    """The dependency that failed or asked us to wait, if the error names it."""
    blames: bool = False
    """Whether some dependency failed or asked us to wait, named or not."""
    key: str | None = None
    """The message's key; None for an English sentence that has none."""
    params: dict[str, Any] = field(default_factory=dict)


def classify(error: BaseException) -> Failure:
    """Classify any exception. Unknown ones are retryable: most surprises pass, and retries are bounded."""
    while isinstance(error, BaseExceptionGroup):  # of a task group: its first error ended the others
        error = error.exceptions[0]
    known = error if isinstance(error, WaybillError) else _translate(error)
    meaning = MEANINGS[known.code]
    wait = known.retry_after
    if not (isinstance(wait, int | float) and math.isfinite(wait) and wait >= 0):
        wait = None  # an invalid wait must not make the failure free
    detail = dict(known.detail or {})
    if known.key is not None:
        detail |= {"key": known.key, "params": known.params}
    return Failure(
        code=known.code,
        message=known.message,
        status=meaning.status,
        retryable=meaning.retryable,
        charged=wait is None and not isinstance(known, DatabaseUnavailable),
        retry_after=wait,
        detail=detail or None,
        of_dependency=wait is None and isinstance(known, DependencyFault),
        away=wait is None and isinstance(known, DependencyAway),
        dependency=known.dependency,
        blames=isinstance(known, DependencyFault) or known.dependency is not None,
        key=known.key,
        params=known.params,
    )


def is_database_outage(error: BaseException) -> bool:
    """Whether the connection to Postgres failed, rather than a statement on it.

    A bare `ConnectionError` does not count: any server may have caused it. `Database` translates its own.
    """
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_database_outage(error.orig))
    if isinstance(error, sqlalchemy.exc.TimeoutError | DatabaseUnavailable):
        return True
    cause = error.__cause__ if type(error).__module__.startswith("sqlalchemy.dialects") else None
    if cause is not None:
        return is_database_outage(cause)
    if isinstance(error, asyncpg.InterfaceError):
        # The driver raises it for our own mistakes as well ("another operation is in progress"): those are charged.
        return "clos" in str(error)
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return True  # every server that answers is a standby, or refuses to write
    if isinstance(error, asyncpg.InternalClientError):
        # The server sent its last error while we were writing: state 2 is "reading an error".
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


def is_read_only(error: BaseException) -> bool:
    """Whether a server refused to write: it is a standby now, or somebody stopped writes on it."""
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        return error.orig is not None and is_read_only(error.orig)
    if type(error).__module__.startswith("sqlalchemy.dialects") and error.__cause__ is not None:
        return is_read_only(error.__cause__)
    return isinstance(error, asyncpg.ReadOnlySQLTransactionError)


def _translate(error: BaseException) -> WaybillError:
    detail = {"exception": type(error).__qualname__, "text": str(error)[:2000]}
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return IoFailure(msg("storage.full"), detail=detail)  # which disk is full, nobody knows
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return TimeLimitExceeded(detail=detail)
    if is_database_outage(error):
        return DatabaseUnavailable(detail=detail)
    if isinstance(error, OSError):
        return IoFailure(detail=detail)
    return WaybillError(detail=detail)

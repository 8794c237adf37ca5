"""What an exception means: `classify` turns any exception into a failure of the taxonomy.

It is the only place that decides whether to retry.
"""

from __future__ import annotations

import asyncio
import errno
import math
from dataclasses import dataclass, field
from typing import Any

import asyncpg
import sqlalchemy.exc

from waybill.errors import (
    MEANINGS,
    Code,
    DatabaseUnavailable,
    DependencyAway,
    DependencyFault,
    IoFailure,
    TimeLimitExceeded,
    WaybillError,
)
from waybill.messages import msg


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


def is_passing_trouble(error: BaseException) -> bool:
    """Whether the database was away, busy or locked, so that the same may go well a moment later.

    Ask it only about code that calls nothing but the database: there, a broken or slow socket is the database's.
    """
    return is_database_outage(error) or isinstance(
        error,
        OSError
        | TimeoutError
        | asyncpg.TransactionRollbackError  # a deadlock, or a serialisation failure
        | asyncpg.InsufficientResourcesError
        | asyncpg.QueryCanceledError
        | asyncpg.LockNotAvailableError,
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

"""How the command ends: one exit code per way of failing, and one sentence on standard error.

Scripts branch on the code, people read the sentence; a traceback means a bug of ours.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    REFUSED = 1
    """Not found, in conflict with how things are now, not finished in time, or a document at fault."""
    USAGE = 2
    """Wrong arguments, wrong configuration, a broken mapping, or a schema this program was not built for."""
    UNREACHABLE = 3
    """The database does not answer, or does not let us in; for `submit`, the API."""


EXPLAINED = (
    "Exit codes: 0 fine · 1 refused, not found or not finished · 2 wrong usage or configuration · "
    "3 the database (for `submit`: the API) cannot be reached."
)


def understand(error: Exception) -> tuple[ExitCode, str] | None:
    """The exit code and the sentence for an error, or None when it is a bug that deserves its traceback."""
    # Here, so that commands that touch no database start fast.
    import asyncpg
    import sqlalchemy.exc

    from waybill.console.database import NoDatabase
    from waybill.db import SchemaMismatch
    from waybill.errors import DatabaseUnavailable, WaybillError, is_database_outage

    if isinstance(error, DatabaseUnavailable):
        return ExitCode.UNREACHABLE, error.message
    if isinstance(error, NoDatabase | SchemaMismatch):
        return ExitCode.USAGE, error.message
    if isinstance(error, WaybillError):
        return ExitCode.REFUSED, error.message
    if is_database_outage(error):
        return ExitCode.UNREACHABLE, f"The connection to Postgres was lost: {error}. Try again in a moment."
    if isinstance(error, TimeoutError):
        return ExitCode.UNREACHABLE, "Postgres took too long to answer. Try again in a moment."
    if isinstance(error, sqlalchemy.exc.DBAPIError):
        error = error.orig if isinstance(error.orig, Exception) else error
        # SQLAlchemy's adapter wraps the driver's error once more.
        error = error.__cause__ if isinstance(error.__cause__, asyncpg.PostgresError) else error
    if isinstance(error, asyncpg.PostgresError | sqlalchemy.exc.DBAPIError):
        return ExitCode.REFUSED, f"Postgres refused this: {error}"
    return None

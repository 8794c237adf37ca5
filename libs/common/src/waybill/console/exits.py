"""Exit codes, and the message for each error.

Scripts use the code, people read the message on standard error. A traceback means that we have a bug.
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    OK = 0
    REFUSED = 1
    """Not found, in conflict with the current state, not finished in time, or a document is at fault."""
    USAGE = 2
    """Wrong arguments, wrong configuration, an invalid mapping, or a database schema of another version."""
    UNREACHABLE = 3
    """The database, or for `submit` the API, cannot be reached or refuses the connection."""
    NEEDS_REVIEW = 4
    """`submit` waited, and a person has to look at a result before anybody gets it."""
    PARTIAL = 5
    """`batch submit` waited, and some of the files failed."""


EXPLAINED = (
    "Exit codes: 0 success · 1 refused, not found or not finished · 2 wrong usage or configuration · "
    "3 the database (for `submit` and `batch`: the API) cannot be reached · 4 a person has to look at a result first · "
    "5 some files of a batch failed."
)


def understand(error: Exception) -> tuple[ExitCode, str] | None:
    """The exit code and the message for an error. None means that it is a bug and gets a traceback."""
    # Imported here, so that commands without a database start fast.
    import asyncpg
    import sqlalchemy.exc

    from waybill.console.database import NoDatabase
    from waybill.db import SchemaMismatch
    from waybill.errors import DatabaseUnavailable, WaybillError
    from waybill.failures import is_database_outage

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
        # SQLAlchemy's adapter wraps the driver's error again.
        error = error.__cause__ if isinstance(error.__cause__, asyncpg.PostgresError) else error
    if isinstance(error, asyncpg.PostgresError | sqlalchemy.exc.DBAPIError):
        return ExitCode.REFUSED, f"Postgres refused this: {error}"
    return None

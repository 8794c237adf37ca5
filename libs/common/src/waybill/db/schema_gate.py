"""`python -m waybill.db.schema_gate [SECONDS]`: waits until this image can run on the schema of the database.

Pods run it before their service while a migration is under way elsewhere. It only reads.
"""

from __future__ import annotations

import asyncio
import sys

import asyncpg
import structlog

from waybill import log as logging_setup
from waybill.config import CommonSettings, load
from waybill.db.database import Database
from waybill.db.schema import SchemaMismatch
from waybill.errors import DatabaseUnavailable
from waybill.failures import is_database_outage

log: structlog.stdlib.BoundLogger = structlog.get_logger()

OK, NOT_YET, USAGE, UNREACHABLE = 0, 1, 2, 3
_WAIT = 600.0
_LOOK_EVERY = 2.0


def main() -> None:
    seconds = _seconds()
    settings = load(CommonSettings)
    logging_setup.configure(settings, service="schema-gate")
    sys.exit(asyncio.run(wait_for_schema(settings, seconds)))


async def wait_for_schema(settings: CommonSettings, seconds: float) -> int:
    """Wait for `seconds` at most; the exit code says how it ended."""
    try:
        database = await Database.connect(settings, name="waybill schema gate", schema=False)
    except (DatabaseUnavailable, SchemaMismatch) as error:
        log.error("schema_not_reached", error=error.message)
        return UNREACHABLE
    except asyncpg.PostgresError as error:  # it answers, but refuses to let us in
        log.error("schema_not_reached", error=str(error))
        return UNREACHABLE
    try:
        return await _passed(database, seconds)
    finally:
        await database.close()


async def _passed(database: Database, seconds: float) -> int:
    deadline = asyncio.get_running_loop().time() + seconds
    said = ""
    while True:
        trouble = await _trouble(database)
        if trouble is None:
            log.info("schema_is_there")
            return OK
        if asyncio.get_running_loop().time() >= deadline:
            log.error("schema_did_not_come", waited_seconds=seconds, error=trouble)
            return NOT_YET
        if trouble != said:
            log.info("waiting_for_schema", reason=trouble)
            said = trouble
        await asyncio.sleep(_LOOK_EVERY)


async def _trouble(database: Database) -> str | None:
    """Why this image cannot run on the schema now; None if it can."""
    try:
        await database.check_schema()
    except SchemaMismatch as mismatch:
        return mismatch.message
    except Exception as error:
        if not is_database_outage(error):
            raise
        return f"the database does not answer: {error}"
    return None


def _seconds() -> float:
    try:
        seconds = float(sys.argv[1]) if len(sys.argv) > 1 else _WAIT
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 7 * 86400:
        sys.stderr.write("usage: python -m waybill.db.schema_gate [SECONDS], at most a week\n")
        sys.exit(USAGE)
    return seconds


if __name__ == "__main__":
    main()

"""A process that records audit events and links them: `python -m support.audit_recorder URL NUMBER EVENTS`.

With 0 events it goes on until it is killed.
"""

from __future__ import annotations

import asyncio
import sys

from waybill.audit import record
from waybill.audit.chain import link
from waybill.audit.signatures import Signer
from waybill.config import DatabaseUrl
from waybill.db import Database

SECRET = b"a secret that only the services know"


async def _run(url: str, number: int, events: int) -> None:
    database, done = Database(DatabaseUrl(url), hot_size=2), 0
    while not events or done < events:
        async with database.hot() as connection, connection.transaction():
            await record(connection, "queue.paused", f"queue:{number}", detail={"n": done})
        await link(database, Signer(SECRET), batch=7)
        done += 1
    await database.close()


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))

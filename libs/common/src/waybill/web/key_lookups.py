"""Looks up keys that the cache does not know: all that wait, in one statement, and one statement at a time.

A flood of wrong keys then takes one connection to the database and a few statements a second, however many they are,
and a right key among them waits for two statements at most.
"""

from __future__ import annotations

import asyncio

from waybill.db import Database
from waybill.errors import Unauthorized
from waybill.security import keys
from waybill.security.keys import KeyInfo

_MOST = 500
"""Keys in a statement. So many take a few milliseconds."""

_Waiting = tuple[str, asyncio.Future[KeyInfo]]


class KeyLookups:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: list[_Waiting] = []
        self._task: asyncio.Task[None] | None = None

    async def find(self, text: str) -> KeyInfo:
        """The key with this text. Unauthorized if it is unknown or no longer valid."""
        found: asyncio.Future[KeyInfo] = asyncio.get_running_loop().create_future()
        self._waiting.append((text, found))
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await found

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting[:_MOST], self._waiting[_MOST:]
                await self._look_up([(text, found) for text, found in batch if not found.done()])
        finally:
            self._task = None

    async def _look_up(self, batch: list[_Waiting]) -> None:
        try:
            async with self._database.hot() as connection:
                answers = await keys.verify_all(connection, [text for text, _ in batch])
        except BaseException as error:
            # Whoever waits must hear of it, also when the loop stops.
            for _, found in batch:
                if isinstance(error, asyncio.CancelledError):
                    found.cancel()
                elif not found.done():
                    found.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, found), answer in zip(batch, answers, strict=True):
            if found.done():  # whoever asked has left meanwhile
                continue
            if isinstance(answer, Unauthorized):
                found.set_exception(answer)
            else:
                found.set_result(answer)

"""The servers that a database URL names, of which one writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import asyncpg

from waybill.config import DatabaseUrl

if TYPE_CHECKING:
    from waybill.db.database import Connection

_MAY_BE_ELSEWHERE = (OSError, TimeoutError, asyncpg.CannotConnectNowError, asyncpg.TargetServerAttributeNotMatched)


class Servers:
    """Finds the server to connect to, and begins with it the next time.

    The driver can search, too, but gives all servers one time limit together. A machine that has vanished says nothing
    and would use it up, before the one that took over is asked.
    """

    def __init__(self, url: DatabaseUrl, *, patience: float) -> None:
        """`patience` is in seconds, for all servers together."""
        self._urls = url.servers
        self._patience = patience / len(self._urls)

    async def connect(self, *_: object, **arguments: Any) -> Connection:
        """Connect as `asyncpg.connect` does. The pools call it with an address, too, which is one of ours."""
        failures: list[Exception] = []
        for url in list(self._urls):
            try:
                connection: Connection = await asyncpg.connect(url, **{**arguments, "timeout": self._patience})
            except _MAY_BE_ELSEWHERE as error:
                failures.append(error)
            else:
                self._urls.sort(key=lambda each: each != url)  # the others keep their order
                return connection
        # A standby beside a server that cannot be reached is not what is wrong.
        failures.sort(key=lambda error: isinstance(error, asyncpg.TargetServerAttributeNotMatched))
        raise failures[0]

"""Clients of other services, shared by all runs of a worker: an HTTP client, a mail server, a cache.

A client is opened when a run first asks for it and closed when the worker stops. Each lives in a task of its own, so
that it is closed by the task that opened it and no run's cancellation can interrupt its opening for the others.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog

C = TypeVar("C")
ClientFactory = Callable[[], AbstractAsyncContextManager[C]]
"""A function that opens a client, decorated with `contextlib.asynccontextmanager`."""

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_CLOSING = 5.0
"""Seconds a client may take to close. Then its task is cancelled, so that the worker can exit."""


@dataclass(frozen=True, slots=True)
class _Shared:
    opened: asyncio.Future[Any]
    task: asyncio.Task[None]


class Clients:
    def __init__(self) -> None:
        self._shared: dict[ClientFactory[Any], _Shared] = {}
        self._closing = asyncio.Event()

    async def use(self, factory: ClientFactory[C]) -> C:
        """The worker's one client from `factory`. If it cannot be opened, this use fails and the next tries again."""
        if self._closing.is_set():
            raise RuntimeError("the worker has closed its clients")
        shared = self._shared.get(factory)
        if shared is None:
            loop, name = asyncio.get_running_loop(), getattr(factory, "__qualname__", repr(factory))
            opened: asyncio.Future[Any] = loop.create_future()
            # A context of its own: the client must not log in the name of the job that happened to ask first.
            task = loop.create_task(self._keep(factory, name, opened), name=name, context=contextvars.Context())
            shared = self._shared[factory] = _Shared(opened, task)
        client: C = await asyncio.shield(shared.opened)
        return client

    async def close(self) -> None:
        """Close every client. Call it when no run is left that uses one."""
        self._closing.set()
        tasks = [shared.task for shared in self._shared.values()]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_CLOSING)
        for task in late:
            log.warning("client_not_closed", client=task.get_name(), waited=_CLOSING)
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1.0)

    async def _keep(self, factory: ClientFactory[Any], name: str, opened: asyncio.Future[Any]) -> None:
        """Open the client, keep it until the worker stops, and close it."""
        try:
            async with factory() as client:
                opened.set_result(client)
                await self._closing.wait()
        except BaseException as error:
            if opened.done():
                log.warning("client_closed_badly", client=name, exc_info=error)
                return
            del self._shared[factory]
            if isinstance(error, asyncio.CancelledError):  # a run would take it for its own cancellation
                error = RuntimeError(f"{name} was cancelled while it opened its client")
            opened.set_exception(error)
            opened.exception()  # marks it as retrieved: every run that waited for it may be gone by now

"""What the parts of the API share while it runs, and what a pipeline adds to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from fastapi import APIRouter, Request

from waybill.audit import RefusalCounter
from waybill.audit.linker import Linker
from waybill.changes import Subscriptions
from waybill.config import ApiSettings, ProcessSettings, load
from waybill.db import Database
from waybill.security import Principal, SessionSigner
from waybill.security.secrets import shared_secret
from waybill.storage import Space, Storage
from waybill.web.key_cache import KeyCache
from waybill.web.live_streams import LiveStreams
from waybill.web.request_limits import RequestLimits
from waybill.web.session_cache import SessionCache
from waybill.web.wrong_keys import WrongKeys

T = TypeVar("T")
S = TypeVar("S", bound=ProcessSettings)


@dataclass(frozen=True, slots=True)
class ApiPart:
    """What a pipeline brings to the API."""

    routers: Sequence[APIRouter]
    services: Callable[[Context], AbstractAsyncContextManager[object]] | None = None
    """Opens what the pipeline's routes work with. `Context.service` finds it by its type."""
    large_bodies: frozenset[str] = frozenset()
    """Paths that accept more than a small form. Their routes enforce limits of their own."""
    body_limits: Mapping[str, int] = field(default_factory=dict)
    """Routes (`/api/jobs/{job_id}/revisions`) whose bodies may be larger than usual, and how many bytes they may have.
    Such a body is read as a whole before its route is called."""
    adopt: Callable[[Context, str, Principal], Awaitable[bool]] | None = None
    """Called when a browser signs in, to give the principal what the session owned. False if it may not have that."""
    check: Callable[[Context], Awaitable[str | None]] | None = None
    """Says in a sentence what a person has to mend, or None. `/readyz` shows it; the API stays ready."""


class Context:
    """Created before the first request and closed after the last. It does not close the database and the storage."""

    signer: SessionSigner

    def __init__(
        self,
        settings: ApiSettings,
        database: Database,
        storage: Storage,
        parts: Sequence[ApiPart] = (),
        pipeline_settings: Sequence[ProcessSettings] = (),
    ) -> None:
        self.settings = settings
        self.database = database
        self.storage = storage
        self.parts = parts
        self.space = Space(storage, settings.storage_min_free_mb * 2**20)
        self.changes = Subscriptions(database)
        self.keys = KeyCache(database, self.changes)
        self.sessions = SessionCache(database, self.changes)
        self.limits = RequestLimits(settings)
        self.wrong_keys = WrongKeys()
        self.refusals = RefusalCounter(database)
        self.linker = Linker(database, settings)
        self.streams = LiveStreams(
            self.changes,
            self.keys,
            most_per_owner=settings.api_streams_per_owner,
            most_per_address=settings.api_streams_per_address,
        )
        self._pipeline_settings: dict[type, ProcessSettings] = {type(given): given for given in pipeline_settings}
        self._services: dict[type, object] = {}

    def settings_of(self, kind: type[S]) -> S:
        """A pipeline's settings: the given ones, else from the environment."""
        if kind not in self._pipeline_settings:
            self._pipeline_settings[kind] = load(kind)
        return cast("S", self._pipeline_settings[kind])

    def service(self, kind: type[T]) -> T:
        """The service of this type, which a part has opened."""
        return cast("T", self._services[kind])

    async def adopt(self, session_owner: str, principal: Principal) -> bool:
        """Hand over what a browser's session owned to the principal it signed in as; whether all of it went along.

        What a part without `adopt` has stays the session's, which the browser then returns to when it signs out.
        """
        adopted = [await part.adopt(self, session_owner, principal) for part in self.parts if part.adopt is not None]
        return len(adopted) == len(self.parts) and all(adopted)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        self.signer = SessionSigner(await self._secret(), lasts=self.settings.api_session_lifetime * 86400)
        self.changes.start()
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.changes.stop)
            self.linker.start()
            stack.push_async_callback(self.linker.stop)
            self.refusals.start()
            stack.push_async_callback(self.refusals.stop)
            for part in self.parts:
                if part.services is not None:
                    opened: Any = await stack.enter_async_context(part.services(self))
                    self._services[type(opened)] = opened
            stack.callback(self.streams.close)
            yield

    async def _secret(self) -> bytes:
        given = self.settings.api_session_secret
        if given is not None:
            return given.get_secret_value().encode()
        async with self.database.hot() as connection:
            return await shared_secret(connection, "sessions")


def context_of(request: Request) -> Context:
    found: Context = request.app.state.context
    return found

"""Serves the API over real HTTP on a free port, in the test's own event loop."""

from __future__ import annotations

import asyncio
import itertools
import socket
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from support.engine import start_worker, take_as
from waybill.config import ApiSettings
from waybill.db import Database
from waybill.db.database import Connection
from waybill.failures import Failure
from waybill.security import keys
from waybill.storage import LocalStorage
from waybill.web.context import Context
from waybill_api.app import create_app
from waybill_api.server import ApiServer, configured
from waybill_batches.settings import BatchSettings
from waybill_convert.doubts import Doubts
from waybill_convert.kinds import CONVERT_PDF, PROVENANCE, XML
from waybill_convert.repository.results import note_result
from waybill_convert.settings import ConvertSettings
from waybill_engine import ClaimedJob
from waybill_engine.artefacts import artefact_key, publish
from waybill_engine.finish import judge, settle, succeed
from waybill_engine.lease import WorkerInfo

_numbers = itertools.count(1)

ALL = ("convert:read", "convert:write", "batches:read", "batches:write")


def pdf(text: str | None = None) -> bytes:
    """Bytes that an upload accepts as a PDF. They differ each time, unless the test gives the text."""
    return b"%PDF-1.7\n% " + (text or f"document {next(_numbers)}").encode() + b"\n%%EOF\n"


@dataclass
class Api:
    """A running API, with clients for different visitors."""

    url: str
    context: Context
    server: ApiServer
    clients: list[httpx.AsyncClient]

    def client(
        self, key: str | None = None, *, cookies: dict[str, str] | None = None, headers: dict[str, str] | None = None
    ) -> httpx.AsyncClient:
        """A client for a browser without a cookie, or for a program with a key."""
        headers = (headers or {}) | ({"Authorization": f"Bearer {key}"} if key else {})
        client = httpx.AsyncClient(base_url=self.url, headers=headers, cookies=cookies, trust_env=False, timeout=30)
        self.clients.append(client)
        return client

    async def browser(self) -> httpx.AsyncClient:
        """A client for a browser with a session of its own that has uploaded nothing."""
        client = self.client()
        session = self.context.signer.start(time.time())
        client.cookies.set("waybill_session", self.context.signer.dump(session), domain="127.0.0.1")
        return client

    async def key(self, tenant: str = "acme", *permissions: str, expires_in: float | None = None) -> str:
        async with self.context.database.hot() as connection:
            made = await keys.create(
                connection, tenant=tenant, name="test", permissions=permissions or ALL, expires_in=expires_in
            )
        return made.text

    async def listening(self) -> None:
        """Wait until the API listens for changes."""
        async with asyncio.timeout(10):
            while not self.context.changes.listening:
                await asyncio.sleep(0.005)

    async def heard(self) -> None:
        """Wait until the API has received every change so far. Notifications arrive in the order of commits."""
        changes, topic = self.context.changes, f"test:{uuid.uuid4()}"
        seen = {topic: changes.version(topic)}
        async with self.context.database.hot() as connection:
            await connection.execute("SELECT pg_notify('waybill_changes', $1)", topic)
        assert await changes.wait(seen, 20)


@asynccontextmanager
async def serving(
    settings: dict[str, Any], database: Database, folder: Path, storage: Any = None
) -> AsyncIterator[Api]:
    """Serve an API with these settings, which may belong to any part of the product."""
    app = create_app(
        ApiSettings.model_validate(settings),
        database,
        storage or LocalStorage(folder),
        pipeline_settings=[ConvertSettings.model_validate(settings), BatchSettings.model_validate(settings)],
    )
    # Without the protocol, asyncio does not recognise TCP, and every answer waits for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    server = ApiServer(configured(app, host="127.0.0.1", port=port), app.state.context)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    api = Api(f"http://127.0.0.1:{port}", app.state.context, server, [])
    try:
        while not server.started:
            if task.done():
                await task
            await asyncio.sleep(0.005)
        await api.listening()
        yield api
    finally:
        for client in api.clients:
            await client.aclose()
        server.should_exit = True
        await task


async def upload(
    client: httpx.AsyncClient, content: bytes | None = None, name: str = "invoice.pdf", **fields: str
) -> httpx.Response:
    files = {"file": (name, pdf() if content is None else content, "application/pdf")}
    return await client.post("/api/upload", files=files, data=fields)


async def uploaded(client: httpx.AsyncClient, content: bytes | None = None, **fields: str) -> str:
    """Upload a document and return the id of its new job."""
    answer = await upload(client, content, **fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job"]["id"])


class Converter:
    """Takes the place of a worker: claims conversions and ends them as a test wants, with the engine's functions."""

    def __init__(self, connection: Connection, storage: Any, worker: WorkerInfo) -> None:
        self.connection = connection
        self.storage = storage
        self.worker = worker

    @classmethod
    async def start(cls, connection: Connection, storage: Any) -> Converter:
        worker = await start_worker(connection, queues=[CONVERT_PDF.queue], kinds=[CONVERT_PDF.name])
        return cls(connection, storage, worker)

    async def take(self, limit: int = 100) -> list[ClaimedJob]:
        return await take_as(self.connection, self.worker.id, self.worker.queues, self.worker.kinds, limit)

    async def finish(
        self, claimed: ClaimedJob, xml: bytes = b"<a/>", provenance: bytes = b"{}", doubts: Doubts | None = None
    ) -> None:
        async with self.connection.transaction():
            if doubts is not None:
                await note_result(self.connection, claimed.id, 1, doubts.brief())
            for name, data, kind in (
                (XML, xml, "application/xml"),
                (PROVENANCE, provenance, "application/json"),
            ):
                stored = await self.storage.put(artefact_key(claimed.id, claimed.token, claimed.worker_id, name), data)
                await publish(self.connection, claimed.worker_id, claimed.id, claimed.token, name, stored, kind)
            await succeed(self.connection, self.worker.id, [(claimed.id, claimed.token)])

    async def finish_all(self, xml: bytes = b"<a/>") -> list[uuid.UUID]:
        claimed_jobs = await self.take()
        for claimed in claimed_jobs:
            await self.finish(claimed, xml)
        return [claimed.id for claimed in claimed_jobs]

    async def fail(self, claimed: ClaimedJob, failure: Failure) -> None:
        outcome = judge(claimed, failure, CONVERT_PDF.retry)
        await settle(self.connection, self.worker.id, [(claimed.id, claimed.token, outcome)])

"""Runs the product for a test: the API and, if the test needs them, a gateway and a worker."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import httpx

from support.child_processes import NO_METRICS, free_port, kill_with_children
from support.patience import PATIENCE, eventually
from support.zygote import Program

T = TypeVar("T")

CHROMIUM = shutil.which("chromium-headless-shell") or shutil.which("chromium") or "/usr/bin/chromium"
"""The headless shell takes a third less of the processor for each page."""


class Stack:
    """The product's processes over one database. Visitors differ by their cookies, so tests can share a stack."""

    def __init__(self, database_url: str, folder: Path, *, shared_imports: bool = True, **settings: str) -> None:
        """`settings` are environment variables. Without `shared_imports` every process is a new interpreter."""
        self.database_url = database_url
        self.port, self.gateway_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.home = folder / "home"
        self.folder = folder
        self._shared_imports = shared_imports
        self._processes: dict[str, Program] = {}
        self.settings = {
            "WAYBILL_DATABASE_URL": database_url,
            "WAYBILL_HOME": str(self.home),
            "WAYBILL_LOG_FORMAT": "console",
            "WAYBILL_API_PORT": str(self.port),
            "WAYBILL_GATEWAY_PORT": str(self.gateway_port),
            "WAYBILL_GATEWAY_URL": f"http://127.0.0.1:{self.gateway_port}",
            "WAYBILL_GATEWAY_PROCESSES": "1",
            "WAYBILL_GATEWAY_SECRET": secrets.token_hex(32),
            "WAYBILL_POLL_INTERVAL": "1",
            **NO_METRICS,
            **settings,
        }

    def start(self, name: str, **settings: str) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("WAYBILL_")}
        with self._log(name).open("ab") as log:
            self._processes[name] = Program(
                f"waybill_{name}",
                env={**environment, **self.settings, **settings},
                output=log,
                cwd=self.folder,
                shared_imports=self._shared_imports,
            )

    async def start_all(self, *names: str) -> None:
        """Start these services and wait until they are ready."""
        for name in names:
            self.start(name)
        for name in names:
            if name != "worker":  # a worker listens on no port; its jobs show that it works
                await self.ready(name)

    async def ready(self, name: str) -> None:
        port = self.port if name == "api" else self.gateway_port
        async with httpx.AsyncClient(trust_env=False) as client:

            async def answers() -> bool:
                assert self._processes[name].poll() is None, f"{name} ended:\n{self.log(name)}"
                with contextlib.suppress(httpx.TransportError):
                    return (await client.get(f"http://127.0.0.1:{port}/readyz")).status_code == 200
                return False

            await eventually(answers, within=PATIENCE, every=0.05, what=f"the {name} is ready")

    def stop(self, name: str) -> None:
        """Kill the service with all its children, without a chance to shut down."""
        kill_with_children(self._processes.pop(name))

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def wait(self, name: str) -> None:
        """Wait until the service has ended by itself."""
        self._processes.pop(name).wait(timeout=30)

    def close(self) -> None:
        for name in list(self._processes):
            self.stop(name)

    def log(self, name: str) -> str:
        return self._log(name).read_text(errors="replace")[-4000:]

    def _log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    async def sql(self, statement: str, *arguments: Any) -> list[Any]:
        connection = await asyncpg.connect(self.database_url)
        try:
            return list(await connection.fetch(statement, *arguments))
        finally:
            await connection.close()

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Call a function with a connection to the database."""
        connection = await asyncpg.connect(self.database_url)
        try:
            return await work(connection)
        finally:
            await connection.close()

    async def become(self, job_id: str, state: str, **columns: Any) -> None:
        """Put a job into a state as a worker would leave it, for states that are hard to catch at the right moment."""
        if state == "running":
            columns = {"lease_owner": uuid.uuid4(), **columns}
        names = list(columns)
        changes = "".join(f", {name} = ${number}" for number, name in enumerate(names, start=3))
        rows = await self.sql(
            f"UPDATE jobs SET state = $2, updated_at = now(){changes} WHERE id = $1 RETURNING id",
            uuid.UUID(job_id),
            state,
            *columns.values(),
        )
        assert rows, f"there is no job {job_id}"

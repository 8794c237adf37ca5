"""A desk for tests of batches: it hands ZIPs in at the API, has their jobs run, and looks at what became of them."""

from __future__ import annotations

import asyncio
import io
import itertools
import json
import uuid
import zipfile
from collections.abc import Sequence
from typing import Any

import httpx

from support.zips import zipped
from waybill.db import Database
from waybill.storage import Storage
from waybill_batches import handlers as _batches
from waybill_convert import handlers as _convert
from waybill_engine.testing import InlineOutcome, make_due, run_waiting

MAY = ("batches:read", "batches:write")
KINDS = ("process_batch", "extract_file", "convert_pdf", "summarize_run")

HANDLERS = (_batches, _convert)
"""Imported, so that this process can run their jobs."""

_numbers = itertools.count(1)

Member = tuple[str, bytes]


def text(name: str = "") -> bytes:
    """A text file's content. It differs each time, unless the test gives one."""
    return (name or f"note {next(_numbers)}").encode() + b"\nis all that it says.\n"


def notes(*names: str) -> bytes:
    """A ZIP with a text file of each name, whose content is new."""
    return zipped(*((name, text()) for name in names))


async def send(client: httpx.AsyncClient, archive: bytes, name: str = "mixed.zip", **fields: Any) -> httpx.Response:
    """Hand a ZIP in. `headers` are the request's, everything else the form's."""
    headers = fields.pop("headers", {})
    written = {name: value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    files = {"file": (name, archive, "application/zip")}
    return await client.post("/api/batches", files=files, data=written, headers=headers)


async def made(client: httpx.AsyncClient, archive: bytes, **fields: Any) -> str:
    """Hand a ZIP in, and return the id of its new batch."""
    answer = await send(client, archive, **fields)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["batch"]["id"])


async def batch(client: httpx.AsyncClient, batch_id: str) -> dict[str, Any]:
    answer = await client.get(f"/api/batches/{batch_id}")
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def files(client: httpx.AsyncClient, batch_id: str, limit: int = 500, **wanted: Any) -> list[dict[str, Any]]:
    """All files of a batch, page by page, in the order of the ZIP unless another is wanted."""
    found: list[dict[str, Any]] = []
    cursor = None
    while True:
        params = {"order": "archive", "limit": limit, **wanted, **({"cursor": cursor} if cursor else {})}
        answer = await client.get(f"/api/batches/{batch_id}/files", params=params)
        assert answer.status_code == 200, answer.text
        found += answer.json()["files"]
        if (cursor := answer.json()["next"]) is None:
            return found


async def result(client: httpx.AsyncClient, batch_id: str, doc_id: str, form: str = "json") -> httpx.Response:
    return await client.get(f"/api/batches/{batch_id}/files/{doc_id}/result", params={"format": form})


async def statuses(client: httpx.AsyncClient, batch_id: str) -> dict[str, str]:
    """The status of each file, by its path."""
    return {file["path"]: file["status"] for file in await files(client, batch_id)}


async def downloaded(client: httpx.AsyncClient, batch_id: str) -> dict[str, bytes]:
    """What the ZIP with the results contains, by its names in their order."""
    answer = await client.get(f"/api/batches/{batch_id}/download")
    assert answer.status_code == 200, answer.text
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        assert len({name.lower() for name in names}) == len(names), "no name twice, whatever the file system"
        return {name: archive.read(name) for name in names}


def counted(batch: dict[str, Any]) -> dict[str, int]:
    """A batch's counts without those that are nought."""
    return {name: number for name, number in batch["counts"].items() if number}


class Desk:
    """Runs the jobs of batches in the test's own process, with the worker's own code."""

    def __init__(self, database: Database, storage: Storage) -> None:
        self.database = database
        self.storage = storage

    async def work(self, kinds: Sequence[str] = KINDS, *, at_most: int = 1000) -> list[InlineOutcome]:
        """Run all jobs that wait (of these kinds), and those that they make."""
        return await run_waiting(self.database, self.storage, kinds=kinds, at_most=at_most)

    async def work_on(self, kinds: Sequence[str] = KINDS) -> list[InlineOutcome]:
        """The same, and the jobs that are to run later, until nothing is left."""
        outcomes: list[InlineOutcome] = []
        while True:
            outcomes += await self.work(kinds)
            later = await self.value(
                "SELECT count(*) FROM public.jobs WHERE state = 'scheduled' AND run_at < 'infinity'"
            )
            if not later:
                return outcomes
            async with self.database.hot() as connection:
                await make_due(connection)

    async def sql(self, statement: str, *arguments: Any) -> list[Any]:
        async with self.database.hot() as connection:
            return list(await connection.fetch(statement, *arguments))

    async def value(self, statement: str, *arguments: Any) -> Any:
        return (await self.sql(statement, *arguments))[0][0]

    async def job(self, batch_id: str, kind: str) -> uuid.UUID:
        """The only job of this kind in the batch's present run."""
        rows = await self.sql(
            "SELECT all_jobs.id FROM all_jobs JOIN batches ON run_job IN (parent_id, all_jobs.id)"
            " WHERE batches.id = $1 AND kind = $2",
            uuid.UUID(batch_id),
            kind,
        )
        (row,) = rows
        return uuid.UUID(str(row["id"]))


async def gathered(*answers: Any) -> list[Any]:
    return list(await asyncio.gather(*answers))

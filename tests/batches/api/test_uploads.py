"""A ZIP comes in: what is refused leaves nothing, and the same request makes one batch only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api, pdf
from support.batch_desk import batch, made, notes, send
from support.patience import eventually
from waybill.db import Database
from waybill.pipelines import brought
from waybill_engine import erasure

_HEAD = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.zip"\r\n\r\nPK\x03\x04'


def stored(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def batches(db: Database) -> int:
    async with db.hot() as connection:
        return int(await connection.fetchval("SELECT count(*) FROM batches"))


async def nothing(db: Database, folder: Path) -> None:
    assert stored(folder) == []
    assert await batches(db) == 0
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT count(*) FROM jobs") == 0


def part(name: str, value: bytes, filename: str | None = None) -> bytes:
    said = f'form-data; name="{name}"' + (f'; filename="{filename}"' if filename is not None else "")
    return f"--x\r\nContent-Disposition: {said}\r\n\r\n".encode() + value + b"\r\n"


async def post(client: httpx.AsyncClient, *parts: bytes) -> httpx.Response:
    return await client.post(
        "/api/batches",
        content=b"".join(parts) + b"--x--\r\n",
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )


async def raw(api: Api, **headers: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(api.url.rpartition(":")[2]))
    lines = {"Host": "x", "Content-Type": "multipart/form-data; boundary=x", **headers}
    writer.write(b"POST /api/batches HTTP/1.1\r\n")
    writer.write("".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items()).encode() + b"\r\n")
    return reader, writer


async def answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    length = int(head.lower().partition("content-length:")[2].split()[0])
    return int(head.split()[1]), json.loads(await reader.readexactly(length))


async def test_a_zip_becomes_a_batch(browser: httpx.AsyncClient) -> None:
    archive = notes("a.txt")
    received = await send(browser, archive, name="../Bills of May.zip")
    assert received.status_code == 202
    new = received.json()["batch"]
    assert received.headers["location"] == f"/api/batches/{new['id']}"
    assert received.json()["deduped_from"] is None
    assert (new["name"], new["status"], new["run"]) == ("Bills of May", "queued", 1)
    assert (new["source"]["name"], new["source"]["bytes"]) == ("Bills of May.zip", len(archive))
    assert (new["progress"], new["error"], new["summary"], new["enriched"]) == (0, None, None, False)
    assert (new["cancellable"], new["retryable"], new["downloadable"]) == (True, False, False)
    assert await batch(browser, new["id"]) == new


@pytest.mark.parametrize("before", [True, False], ids=["before the file", "after the file"])
async def test_fields_may_stand_on_either_side_of_the_file(browser: httpx.AsyncClient, before: bool) -> None:
    rules = [{"pattern": "*.pdf", "mapping": "pt_simon_invoice_v1"}]
    fields = [
        part("name", b" May \n 2026 "),
        part("rules", json.dumps(rules).encode()),
        part("force", b"true"),
    ]
    file = part("file", notes("a.txt"), "a.zip")
    received = await post(browser, *(fields if before else []), file, *([] if before else fields))
    assert received.status_code == 202, received.text
    new = received.json()["batch"]
    assert (new["name"], new["rules"], new["enriched"]) == ("May 2026", rules, False)


WRONG: dict[str, tuple[list[bytes], int, str]] = {
    "no file": ([part("name", b"x")], 400, "VALIDATION_ERROR"),
    "no file was chosen": ([part("file", b"", "")], 400, "VALIDATION_ERROR"),
    "not a ZIP": ([part("file", pdf(), "a.zip")], 422, "PARSE_ERROR"),
    "empty": ([part("file", b"", "a.zip")], 422, "PARSE_ERROR"),
    "shorter than its mark": ([part("file", b"PK", "a.zip")], 422, "PARSE_ERROR"),
    "two files": ([part("file", notes("a"), "a.zip"), part("more", notes("b"), "b.zip")], 400, "VALIDATION_ERROR"),
    "a field twice": ([part("name", b"a"), part("name", b"b"), part("file", notes("a"), "a.zip")], 400, ""),
    "rules that are no JSON": ([part("file", notes("a"), "a.zip"), part("rules", b"{")], 422, "VALIDATION_ERROR"),
    "rules that are no list": ([part("file", notes("a"), "a.zip"), part("rules", b"{}")], 422, "VALIDATION_ERROR"),
    "rules too deep": ([part("file", notes("a"), "a.zip"), part("rules", b"[" * 60_000)], 422, ""),
    "a rule too much": (
        [
            part("file", notes("a"), "a.zip"),
            part("rules", json.dumps([{"pattern": "*", "mapping": ""}] * 51).encode()),
        ],
        422,
        "VALIDATION_ERROR",
    ),
    "a rule with more": (
        [part("file", notes("a"), "a.zip"), part("rules", b'[{"pattern": "*", "mapping": "", "x": 1}]')],
        422,
        "VALIDATION_ERROR",
    ),
    "an unknown mapping": (
        [part("file", notes("a"), "a.zip"), part("rules", b'[{"pattern": "*", "mapping": "no_such_v1"}]')],
        400,
        "BAD_MAPPING",
    ),
    "a mapping with a NUL": (
        [part("file", notes("a"), "a.zip"), part("rules", b'[{"pattern": "*", "mapping": "a\\u0000"}]')],
        422,
        "VALIDATION_ERROR",
    ),
    "a schema that is no JSON": ([part("file", notes("a"), "a.zip"), part("schema", b"nonsense")], 422, ""),
    "a schema that is no object": ([part("file", notes("a"), "a.zip"), part("schema", b"[1]")], 422, ""),
    "a schema of 17 KB": (
        [part("file", notes("a"), "a.zip"), part("schema", json.dumps({"a": "x" * 17_000}).encode())],
        422,
        "",
    ),
    "a field too long": ([part("file", notes("a"), "a.zip"), part("rules", b" " * 70_000)], 400, ""),
    "force that is neither": ([part("file", notes("a"), "a.zip"), part("force", b"perhaps")], 400, ""),
    "a name too long": ([part("file", notes("a"), "a.zip"), part("name", b"x" * 201)], 422, "VALIDATION_ERROR"),
    "a name with a NUL": ([part("file", notes("a"), "a.zip"), part("name", b"a\x00b")], 422, "VALIDATION_ERROR"),
    "too many parts": ([part("file", notes("a"), "a.zip"), *[part(f"x{n}", b"") for n in range(20)]], 400, ""),
}


async def test_what_is_wrong_is_said_and_leaves_nothing(browser: httpx.AsyncClient, folder: Path, db: Database) -> None:
    surprises = []
    for what, (parts, status, code) in WRONG.items():
        refused = await post(browser, *parts)
        if refused.status_code // 100 != 4 or not refused.headers["content-type"].startswith("application/problem"):
            surprises.append((what, refused.status_code, refused.text))
        elif refused.status_code != status or (code and refused.json()["code"] != code):
            surprises.append((what, refused.status_code, refused.json()["code"]))
        await nothing(db, folder)
    assert not surprises, "\n".join(map(str, surprises))


async def test_a_request_that_is_no_form_is_refused(browser: httpx.AsyncClient, folder: Path, db: Database) -> None:
    for content, kind in ((notes("a"), "application/zip"), (b"", "multipart/form-data"), (b"{}", "application/json")):
        refused = await browser.post("/api/batches", content=content, headers={"Content-Type": kind})
        assert refused.status_code == 400, refused.text
    await nothing(db, folder)


async def test_a_declared_length_is_refused_before_a_byte_is_read(serve: Serve) -> None:
    async with serve(batch_max_mb=1) as api:
        reader, writer = await raw(api, Content_Length="99999999", Expect="100-continue")
        status, problem = await answer(reader)
        assert (status, problem["code"]) == (413, "TOO_LARGE"), "and no '100 Continue' before it"
        assert "1 MB" in problem["detail"]
        writer.close()


async def test_too_large_is_said_while_reading_and_nothing_stays(serve: Serve, folder: Path, db: Database) -> None:
    async with serve(batch_max_mb=1) as api:
        reader, writer = await raw(api, Transfer_Encoding="chunked")
        for chunk in (_HEAD, *[b"x" * 65536] * 20):
            writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
            await writer.drain()
        status, problem = await answer(reader)
        assert (status, problem["code"]) == (413, "TOO_LARGE")
        writer.close()
        await nothing(db, folder)
        # The limits of single documents are not those of batches.
    async with serve(max_upload_mb=1, batch_max_mb=3) as api:
        big = notes("a") + bytes(2 * 2**20)
        assert (await send(await api.browser(), big)).status_code == 202


async def test_who_is_too_slow_hears_it_and_leaves_nothing(serve: Serve, folder: Path, db: Database) -> None:
    async with serve(batch_upload_timeout=0.3) as api:
        reader, writer = await raw(api, Transfer_Encoding="chunked")
        writer.write(b"%x\r\n%s\r\n" % (len(_HEAD), _HEAD))
        assert (await answer(reader))[0] == 408
        writer.close()
        await nothing(db, folder)


async def test_who_hangs_up_leaves_nothing(api: Api, folder: Path, db: Database) -> None:
    _, writer = await raw(api, Transfer_Encoding="chunked")
    chunk = _HEAD + b"x" * 600_000
    writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
    await writer.drain()

    async def arriving() -> bool:
        return bool(stored(folder))

    await eventually(arriving)
    writer.transport.abort()

    async def gone() -> bool:
        return not stored(folder)

    await eventually(gone)
    await nothing(db, folder)


async def test_a_full_disk_is_said_before_anything_is_read(serve: Serve, folder: Path, db: Database) -> None:
    async with serve(storage_min_free_mb=10**9) as api:
        refused = await send(await api.browser(), notes("a"))
        assert refused.status_code == 507
        await nothing(db, folder)


async def test_uploads_are_counted_by_owner(serve: Serve) -> None:
    async with serve(batch_uploads_per_minute=2) as api:
        eager, other = await api.browser(), await api.browser()
        assert [(await send(eager, notes("a"))).status_code for _ in range(2)] == [202, 202]
        refused = await send(eager, notes("a"))
        assert (refused.status_code, refused.json()["code"]) == (429, "RATE_LIMITED")
        assert int(refused.headers["retry-after"]) > 0
        assert (await send(other, notes("a"))).status_code == 202


# The same again


async def test_the_same_zip_is_the_same_batch(browser: httpx.AsyncClient, api: Api, folder: Path) -> None:
    archive = notes("a.txt")
    first = await made(browser, archive)
    kept = stored(folder)
    again = await send(browser, archive, name="other.zip")
    assert (again.status_code, again.json()["deduped_from"], again.json()["batch"]["id"]) == (200, first, first)
    assert stored(folder) == kept, "the second copy is not kept"
    other: list[dict[str, Any]] = [
        {"rules": [{"pattern": "*", "mapping": "pt_simon_invoice_v1"}]},
        {"force": "yes"},
    ]
    for wanted in other:
        assert (await send(browser, archive, **wanted)).status_code == 202, wanted
    assert (await send(await api.browser(), archive)).status_code == 202, "somebody else's"


async def test_two_at_once_make_one_batch(browser: httpx.AsyncClient, db: Database) -> None:
    archive = notes("a.txt")
    answers = await asyncio.gather(*(send(browser, archive) for _ in range(5)))
    assert sorted(one.status_code for one in answers) == [200] * 4 + [202]
    assert len({one.json()["batch"]["id"] for one in answers}) == 1
    assert await batches(db) == 1


@pytest.mark.parametrize("status", ["failed", "cancelled", "expired"])
async def test_what_came_to_nothing_starts_anew(browser: httpx.AsyncClient, db: Database, status: str) -> None:
    archive = notes("a.txt")
    keyed: dict[str, Any] = {"headers": {"Idempotency-Key": "may"}, "force": "true"}
    plain, first = await made(browser, archive), await made(browser, archive, **keyed)
    async with db.hot() as connection:
        await connection.execute("UPDATE batches SET status = $1", status)
    anew = await made(browser, archive, **keyed)
    assert anew not in (plain, first)
    again = await send(browser, archive, **keyed)
    assert (again.status_code, again.json()["deduped_from"]) == (200, anew), "and the key names the new one now"


async def test_an_idempotency_key_makes_one_batch(browser: httpx.AsyncClient, api: Api, folder: Path) -> None:
    archive = notes("a.txt")
    keyed: dict[str, Any] = {"headers": {"Idempotency-Key": "k" * 200}, "force": "true"}
    first = await made(browser, archive, **keyed)
    kept = stored(folder)
    again = await send(browser, archive, **keyed)
    assert (again.status_code, again.json()["deduped_from"]) == (200, first)
    other = await send(browser, notes("b.txt"), **keyed)
    assert (other.status_code, other.json()["code"]) == (409, "IDEMPOTENCY_CONFLICT")
    assert stored(folder) == kept
    stranger = await send(await api.browser(), notes("c.txt"), **keyed)
    assert stranger.status_code == 202, "somebody else's key"


async def test_many_with_one_key_make_one_batch(browser: httpx.AsyncClient, db: Database) -> None:
    archive = notes("a.txt")
    keyed: dict[str, Any] = {"headers": {"Idempotency-Key": "k"}, "force": "true"}
    answers = await asyncio.gather(*(send(browser, archive, **keyed) for _ in range(5)))
    assert sorted(one.status_code for one in answers) == [200] * 4 + [202]
    assert await batches(db) == 1


async def test_an_upload_during_an_erasure_is_refused(api: Api, folder: Path, db: Database) -> None:
    """Also one that had begun before: what arrives in the midst of it would stay for ever."""
    person = api.client(await api.key("acme"))
    begun = asyncio.Event()
    goes_on = asyncio.Event()
    archive = notes("a.txt")

    async def body() -> Any:
        yield part("file", archive, "a.zip")[:-2]
        begun.set()
        await goes_on.wait()
        yield b"\r\n--x--\r\n"

    sending = asyncio.create_task(
        person.post("/api/batches", content=body(), headers={"Content-Type": "multipart/form-data; boundary=x"})
    )
    await begun.wait()

    async def arriving() -> bool:
        return bool(stored(folder))

    await eventually(arriving)
    async with db.hot() as connection:
        request = await erasure.request(connection, "acme")
    await erasure.erase(db, api.context.storage, brought("erasure"), request, within=60)
    goes_on.set()
    refused = await sending
    assert (refused.status_code, refused.json()["code"]) in ((409, "CONFLICT"), (401, "UNAUTHORIZED"))
    assert not [path for path in stored(folder) if path.name != "waybill-owner"]
    assert await batches(db) == 0

"""A gateway or a storage in trouble costs time, and neither files nor attempts that are not theirs."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from support.batch_desk import Desk, batch, counted, files, made, notes, statuses
from support.clock import Clock
from support.gateway import Gateway
from support.packs import SECRET
from support.sick_gateway import Answer, answering, breaking_off, sick_gateway
from waybill.errors import Conflict
from waybill.files.packs import MEDIA_TYPE, end_frame, frame
from waybill.storage import LocalStorage
from waybill_engine import State
from waybill_engine.testing import InlineOutcome, make_due, run_inline

pytestmark = pytest.mark.timeout(120)

PACK = {"Content-Type": MEDIA_TYPE}
ONE = frame({"no": 0, "path": "a.txt", "type": "text", "sha256": "ab"}, b"a")

BAD_UNPACKS: dict[str, Answer] = {
    "cut off between two members": answering(200, ONE, PACK),
    "cut off in a member": answering(200, ONE[:-1], PACK),
    "nothing": answering(200, b"", PACK),
    "no pack at all": answering(200, b"<html>it works</html>", PACK),
    "a member without a type": answering(200, frame({"no": 0, "path": "a"}, b"a") + end_frame(), PACK),
    "more after the end": answering(200, ONE + end_frame() + ONE, PACK),
    "the connection breaks": breaking_off,
    "an error of its own": answering(500, b"{}"),
    "a proxy's error": answering(502, b"<html>"),
}
BAD_EXTRACTS: dict[str, Answer] = {
    "another document": answering(200, frame({"no": 7, "status": 200, "ms": 1.0}, b"{}") + end_frame(), PACK),
    "one too few": answering(200, end_frame(), PACK),
    "one too many": answering(
        200, b"".join(frame({"no": n, "status": 200, "ms": 1.0}, b"{}") for n in (0, 1)) + end_frame(), PACK
    ),
    "cut off": answering(200, frame({"no": 0, "status": 200, "ms": 1.0}, b"{}"), PACK),
    "nothing": answering(200, b"", PACK),
    "the connection breaks": breaking_off,
    "an error of its own": answering(500, b"{}"),
}


async def ill(
    monkeypatch: pytest.MonkeyPatch, gateway: Gateway, answer: Answer, work: Callable[[], Awaitable[Any]]
) -> Any:
    """Do something while the gateway answers like this."""
    async with sick_gateway(answer) as sick:
        monkeypatch.setenv("WAYBILL_GATEWAY_URL", sick.url)
        monkeypatch.delenv("WAYBILL_GATEWAY_SECRET")  # this one cannot prove that it knows it
        try:
            return await work()
        finally:
            monkeypatch.setenv("WAYBILL_GATEWAY_URL", gateway.url)
            monkeypatch.setenv("WAYBILL_GATEWAY_SECRET", SECRET)


def one_run(desk: Desk, job: uuid.UUID) -> Callable[[], Awaitable[InlineOutcome]]:
    return lambda: run_inline(desk.database, desk.storage, job)


async def due(desk: Desk) -> None:
    async with desk.database.hot() as connection:
        await make_due(connection)


async def test_an_answer_that_cannot_be_used_is_asked_for_again(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway
) -> None:
    for what, answer in BAD_UNPACKS.items():
        new = await made(browser, notes("a.txt", "b.txt"))
        job = await desk.job(new, "process_batch")
        outcome = await ill(monkeypatch, called, answer, one_run(desk, job))
        assert outcome.state is State.SCHEDULED, (what, outcome)
        assert outcome.code in ("GW_5XX", "GW_TIMEOUT"), (what, outcome)
        now = await batch(browser, new)
        assert (now["status"], now["counts"]["files"], now["error"]) == ("processing", 0, None), what
        await desk.sql("DELETE FROM breaker_counts RETURNING name")
        await due(desk)
        await desk.work()
        assert counted(await batch(browser, new)) == {"files": 2, "complete": 2}, what


async def test_results_that_cannot_be_used_are_asked_for_again(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway
) -> None:
    for what, answer in BAD_EXTRACTS.items():
        new = await made(browser, notes("a.txt"))
        await desk.work(["process_batch"])
        job = await desk.job(new, "extract_file")
        outcome = await ill(monkeypatch, called, answer, one_run(desk, job))
        assert outcome.state is State.SCHEDULED, (what, outcome)
        assert await statuses(browser, new) == {"a.txt": "queued"}
        await desk.sql("DELETE FROM breaker_counts RETURNING name")
        await due(desk)
        await desk.work()
        (file,) = await files(browser, new)
        assert file["status"] == "complete", what
        assert file["retry_count"] == await desk.value("SELECT attempts FROM jobs WHERE id = $1", job), what


async def test_files_fail_alone_with_what_the_gateway_says(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway
) -> None:
    """Whatever the problem document is like."""
    new = await made(browser, notes("a.txt", "b.txt", "c.txt"))
    await desk.work(["process_batch"])
    problem = json.dumps({"code": "PARSE_ERROR", "detail": "No.", "key": 3, "params": []}).encode()
    pack = (
        frame({"no": 0, "status": 422, "ms": 1.0}, problem)
        + frame({"no": 1, "status": 415, "ms": 1.0}, b"{}")
        + frame({"no": 2, "status": 200, "ms": 1.0}, b'{"a":1}')
        + end_frame()
    )
    await ill(monkeypatch, called, answering(200, pack, PACK), desk.work)
    found = await files(browser, new)
    assert [file["status"] for file in found] == ["failed", "failed", "complete"]
    assert found[0]["error"] == {
        "code": "PARSE_ERROR",
        "error_type": "PARSE_ERROR",
        "message": "No.",
        "key": None,
        "params": {},
    }
    assert (await batch(browser, new))["status"] == "complete_with_errors"


async def test_a_busy_gateway_costs_no_attempt(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway
) -> None:
    new = await made(browser, notes("a.txt"))
    busy = answering(503, b"{}", {"Retry-After": "7"})
    for kind in ("process_batch", "extract_file"):
        job = await desk.job(new, kind)
        outcome = await ill(monkeypatch, called, busy, one_run(desk, job))
        assert (outcome.state, outcome.attempts) == (State.SCHEDULED, 0)
        await desk.sql("DELETE FROM breakers RETURNING name")
        await due(desk)
        await desk.work([kind])
    await desk.work()
    assert counted(await batch(browser, new)) == {"files": 1, "complete": 1}


async def test_while_the_gateway_is_down_batches_wait_and_burn_nothing(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway, clock: Clock
) -> None:
    batches = [await made(browser, notes(f"{number}.txt")) for number in range(16)]
    monkeypatch.setenv("WAYBILL_GATEWAY_URL", "http://127.0.0.1:9")
    tried = 0
    with pytest.raises(Conflict, match="The breaker of gateway is open"):
        for new in batches:
            outcome = await run_inline(desk.database, desk.storage, await desk.job(new, "process_batch"))
            assert outcome.state is State.SCHEDULED
            tried += 1
    assert tried < 16
    assert await desk.value("SELECT max(attempts) FROM jobs") <= 1
    waiting = await desk.job(batches[-1], "process_batch")
    assert await desk.value("SELECT attempts FROM jobs WHERE id = $1", waiting) == 0
    assert (await batch(browser, batches[-1]))["status"] == "queued"

    monkeypatch.setenv("WAYBILL_GATEWAY_URL", called.url)
    await clock.forward(60)
    await desk.work_on()
    assert {(await batch(browser, new))["status"] for new in batches} == {"complete"}
    assert await desk.value("SELECT max(attempts) FROM jobs") <= 1


async def test_a_gateway_that_dies_in_the_middle_of_a_zip(
    desk: Desk, browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, called: Gateway
) -> None:
    """Parts that were stored by then are nobody's; the next run starts from the beginning."""
    answered = asyncio.Event()

    async def dying(writer: asyncio.StreamWriter) -> None:
        members = b"".join(
            frame({"no": n, "path": f"{n}.txt", "type": "text", "sha256": "ab"}, b"x" * 300_000) for n in range(20)
        )
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.waybill.pack\r\nContent-Length: 99999999\r\n\r\n"
        )
        writer.write(members[: len(members) - 1000])
        await writer.drain()
        answered.set()
        writer.close()

    new = await made(browser, notes("a.txt"))
    job = await desk.job(new, "process_batch")
    outcome = await ill(monkeypatch, called, dying, one_run(desk, job))
    assert answered.is_set()
    assert outcome.state is State.SCHEDULED
    assert await desk.value("SELECT count(*) FROM batch_files") == 0
    assert await desk.value("SELECT count(*) FROM job_artefacts") == 0
    await due(desk)
    await desk.work()
    assert await statuses(browser, new) == {"a.txt": "complete"}
    assert {
        row[0] for row in await desk.sql("SELECT DISTINCT lease_token FROM job_artefacts WHERE job_id = $1", job)
    } == {2}


async def test_a_stored_file_that_has_changed_is_not_read_as_if_it_were_right(
    desk: Desk, browser: httpx.AsyncClient, storage: LocalStorage
) -> None:
    new = await made(browser, notes("a.txt", "b.txt"))
    await desk.work(["process_batch"])
    key, size = (await desk.sql("SELECT source_key, sum(bytes)::int FROM batch_files GROUP BY 1"))[0]
    await storage.put(key, b"\0" * size)
    (outcome,) = await desk.work(["extract_file"])
    assert (outcome.state, outcome.code) == (State.SCHEDULED, "IO_ERROR")
    await storage.put(key, b"\0" * (size // 2))
    await due(desk)
    (outcome,) = await desk.work(["extract_file"])
    assert (outcome.state, outcome.code) == (State.SCHEDULED, "IO_ERROR")
    await desk.work_on()
    now = await batch(browser, new)
    assert (now["status"], counted(now)) == ("failed", {"files": 2, "failed": 2})
    assert {file["error"]["error_type"] for file in await files(browser, new)} == {"RETRYABLE"}
    assert {file["retry_count"] for file in await files(browser, new)} == {3}


async def test_a_batch_that_is_gone_while_its_job_runs_ends_the_job(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"))
    await desk.work(["process_batch"])
    job = await desk.job(new, "extract_file")
    await desk.sql("DELETE FROM batches WHERE id = $1 RETURNING id", uuid.UUID(new))
    outcome = await run_inline(desk.database, desk.storage, job)
    assert (outcome.state, outcome.code) == (State.FAILED, "EXPIRED")
    assert await desk.value("SELECT count(*) FROM batch_files") == 0

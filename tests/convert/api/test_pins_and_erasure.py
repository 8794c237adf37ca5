"""Pins, and being forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from support.api_server import Api, Converter, pdf, uploaded
from support.patience import eventually
from waybill import retention
from waybill.pipelines import brought
from waybill.storage import LocalStorage
from waybill_engine import erasure


async def test_a_pin_is_set_shown_and_taken_away(api: Api, converter: Converter) -> None:
    person = await api.browser()
    job = await uploaded(person)
    await converter.finish_all()
    path = f"/api/jobs/{job}/pin"
    before = (await person.get("/api/jobs")).json()["since"]
    for _ in range(2):
        answer = await person.post(path)
        assert (answer.status_code, answer.json()["pinned"], answer.json()["status"]) == (200, True, "complete")
    assert answer.json()["links"]["pin"] == path
    changed = (await person.get("/api/jobs", params={"since": before})).json()["jobs"]
    assert [(one["id"], one["pinned"]) for one in changed] == [(job, True)]
    for _ in range(2):
        assert (await person.delete(path)).json()["pinned"] is False


async def test_what_has_expired_cannot_be_pinned_but_a_pin_on_it_can_go(api: Api, converter: Converter) -> None:
    person = await api.browser()
    job = await uploaded(person)
    await converter.finish_all()
    await person.post(f"/api/jobs/{job}/pin")
    await converter.connection.execute("UPDATE conversions SET status = 'expired'")
    assert (await person.delete(f"/api/jobs/{job}/pin")).json()["status"] == "expired"
    answer = await person.post(f"/api/jobs/{job}/pin")
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")


async def test_the_page_pins_without_scripts_and_keeps_the_filters(api: Api, converter: Converter) -> None:
    person = await api.browser()
    job = await uploaded(person)
    await converter.finish_all()
    page = await person.get("/queue?status=complete")
    assert f'action="/queue/{job}/pin?status=complete"' in page.text
    assert 'aria-label="Pin invoice.pdf"' in page.text
    answer = await person.post(f"/queue/{job}/pin?status=complete")
    assert (answer.status_code, answer.headers["location"]) == (303, "/queue?status=complete")
    page = await person.get("/queue")
    assert 'aria-label="Unpin invoice.pdf"' in page.text
    live = await person.post(f"/queue/{job}/unpin", headers={"HX-Request": "true"})
    assert 'aria-label="Pin invoice.pdf"' in live.text
    stranger = await api.browser()
    assert (await stranger.post(f"/queue/{job}/pin")).status_code == 404


async def test_a_session_is_forgotten_with_all_it_uploaded(api: Api, converter: Converter) -> None:
    leaving, staying = await api.browser(), await api.browser()
    done = await uploaded(leaving)
    kept = await uploaded(staying)
    await converter.finish_all()
    await leaving.post(f"/api/jobs/{done}/pin")
    waiting = await uploaded(leaving)
    answer = await leaving.delete("/api/session")
    assert (answer.status_code, answer.json()) == (200, {"finished": True, "jobs": 2, "files": 4})
    assert 'waybill_session=""' in answer.headers["set-cookie"]
    storage: LocalStorage = api.context.storage  # type: ignore[assignment]
    left = [one.key async for one in storage.list()]
    assert len(left) == 3
    assert all(kept in key for key in left)
    assert not any(done in key or waiting in key for key in left)
    assert (await staying.get(f"/api/jobs/{kept}/download")).status_code == 200
    again = await leaving.delete("/api/session")
    assert again.json() == {"finished": True, "jobs": 0, "files": 0}


async def test_what_runs_is_forgotten_when_it_has_stopped(api: Api, converter: Converter) -> None:
    leaving = await api.browser()
    await uploaded(leaving)
    await converter.take()
    answer = await leaving.delete("/api/session")
    assert (answer.status_code, answer.json()["finished"]) == (202, False)
    assert await converter.connection.fetchval("SELECT count(*) FROM jobs WHERE cancel_requested_at IS NOT NULL") == 1


async def test_a_tenant_is_not_forgotten_by_one_of_its_people(api: Api, converter: Converter) -> None:
    key = await api.key("acme")
    program, signed_in = api.client(key), api.client()
    assert (await signed_in.post("/session", json={"key": key})).status_code == 200
    job = await uploaded(program)
    for client in (program, signed_in):
        answer = await client.delete("/api/session")
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    assert (await program.get(f"/api/jobs/{job}")).status_code == 200


async def test_under_legal_hold_nobody_removes_anything(api: Api, converter: Converter) -> None:
    person = await api.browser()
    job = await uploaded(person)
    await retention.hold(converter.connection, "public")
    for answer in (await person.delete(f"/api/jobs/{job}"), await person.delete("/api/session")):
        assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
        assert "legal hold" in answer.json()["detail"]
    assert (await person.get(f"/api/jobs/{job}")).status_code == 200


class SlowUpload:
    """An upload whose sender stops in the middle of the document until `finish`."""

    def __init__(self, client: httpx.AsyncClient, path: str, folder: Path) -> None:
        self._go_on = asyncio.Event()
        self._folder = folder
        headers = {"Content-Type": "multipart/form-data; boundary=b"}
        self._answer = asyncio.create_task(client.post(path, content=self._body(), headers=headers))

    async def _body(self) -> AsyncIterator[bytes]:
        head = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.pdf"\r\n\r\n'
        yield head + pdf() + b"%" * 2_000_000
        await self._go_on.wait()
        yield b"\n%%EOF\r\n--b--\r\n"

    async def begun(self) -> SlowUpload:
        async def is_being_written() -> bool:
            return any(one.stat().st_size for one in self._folder.rglob(".*") if one.is_file())

        await eventually(is_being_written, what="the document is being written")
        return self

    async def finish(self) -> httpx.Response:
        self._go_on.set()
        return await self._answer


async def everything(folder: Path) -> list[str]:
    return [one.name for one in folder.rglob("*") if one.is_file()]


@pytest.mark.parametrize("path", ["/api/upload", "/api/uploads", "/"])
async def test_an_upload_that_was_on_its_way_does_not_outlive_the_erasure_of_its_session(
    api: Api, converter: Converter, folder: Path, path: str
) -> None:
    leaving = await api.browser()
    cookie = dict(leaving.cookies)
    slow = await SlowUpload(leaving, path, folder).begun()
    again = api.client(cookies=cookie)
    assert (await again.delete("/api/session")).json() == {"finished": True, "jobs": 0, "files": 0}
    answer = await slow.finish()
    assert (answer.status_code, "being erased" in answer.text) == (409, True)
    assert await converter.connection.fetchval("SELECT count(*) FROM jobs") == 0
    assert await everything(folder) == []


async def test_an_upload_that_was_on_its_way_does_not_outlive_the_erasure_of_its_tenant(
    api: Api, converter: Converter, folder: Path
) -> None:
    slow = await SlowUpload(api.client(await api.key("acme")), "/api/upload", folder).begun()
    storage: LocalStorage = api.context.storage  # type: ignore[assignment]
    request = await erasure.request(converter.connection, "acme")
    done = await erasure.erase(api.context.database, storage, brought("erasure"), request, within=60)
    assert done.finished_at is not None
    assert (await slow.finish()).status_code == 409
    assert await converter.connection.fetchval("SELECT count(*) FROM jobs") == 0
    assert await everything(folder) == []
    await uploaded(api.client(await api.key("acme")))  # somebody who begins anew under that name


async def test_while_a_session_is_erased_its_cookie_is_a_strangers_and_nothing_is_handed_over(
    api: Api, converter: Converter
) -> None:
    leaving = await api.browser()
    cookie = dict(leaving.cookies)
    job = await uploaded(leaving)
    (claimed,) = await converter.take()
    assert (await leaving.delete("/api/session")).status_code == 202
    again = api.client(cookies=cookie)
    strangers = await uploaded(again, pdf("another"))
    assert (await again.post("/session", json={"key": await api.key("acme")})).status_code == 200
    assert (await again.get(f"/api/jobs/{job}")).status_code == 404, "what is being erased is not given away"
    # The worker had its result all but published when it was asked to stop. It goes with the job.
    await converter.finish(claimed)
    storage: LocalStorage = api.context.storage  # type: ignore[assignment]
    (open_one,) = await erasure.open_ones(converter.connection)
    done = await erasure.erase(api.context.database, storage, brought("erasure"), open_one, within=60)
    assert (done.finished_at is not None, done.jobs) == (True, 1)
    assert [strangers in one.key async for one in storage.list()] == [True]

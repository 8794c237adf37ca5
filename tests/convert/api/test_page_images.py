"""Pictures of pages: drawn by a real gateway when somebody looks, once, kept, and gone with the document."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api, Converter, uploaded
from support.gateway import Gateway
from support.reviewed_invoices import end, good
from support.sick_gateway import answering, breaking_off, sick_gateway
from support.traced import traced
from waybill_documents.messages import DocumentMessage

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
async def api(serve: Serve, gateway: Gateway) -> AsyncIterator[Api]:
    async with serve(gateway_url=gateway.url) as running:
        yield running


async def converted(client: httpx.AsyncClient, converter: Converter) -> str:
    job = await uploaded(client, good().pdf)
    await end(converter, good())
    return job


def size(image: bytes) -> tuple[int, int]:
    assert image.startswith(PNG)
    width, height = struct.unpack(">II", image[16:24])
    return int(width), int(height)


def pictures(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("pages/**/*.png"))


async def test_a_page_is_drawn_as_large_as_asked_and_kept(
    browser: httpx.AsyncClient, converter: Converter, folder: Path
) -> None:
    job = await converted(browser, converter)
    images = {}
    for scale in (1, 2, 3):
        answer = await browser.get(f"/api/jobs/{job}/pages/1?scale={scale}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/png"), answer.text
        assert answer.headers["cache-control"] == "private, no-cache"
        seen = {"If-None-Match": answer.headers["etag"]}
        assert (await browser.get(f"/api/jobs/{job}/pages/1?scale={scale}", headers=seen)).status_code == 304
        assert answer.headers["x-content-type-options"] == "nosniff"
        images[scale] = answer.content
    assert [size(images[scale]) for scale in (1, 2, 3)] == [(595, 842), (1190, 1684), (1785, 2526)]
    assert pictures(folder) == ["1-1.png", "1-2.png", "1-3.png"]
    assert (await browser.get(f"/api/jobs/{job}/pages/1")).content == images[2]
    for path in ("pages/1?scale=4", "pages/1?scale=0", "pages/1?scale=1.5"):
        assert (await browser.get(f"/api/jobs/{job}/{path}")).status_code == 422
    missing = await browser.get(f"/api/jobs/{job}/pages/2")
    assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND"), missing.text
    assert pictures(folder) == ["1-1.png", "1-2.png", "1-3.png"]


async def test_what_cannot_be_drawn_is_said(browser: httpx.AsyncClient, converter: Converter, folder: Path) -> None:
    job = await uploaded(browser)
    await converter.finish_all()
    answer = await browser.get(f"/api/jobs/{job}/pages/1")
    problem = answer.json()
    assert (answer.status_code, problem["code"]) == (422, "PARSE_ERROR"), answer.text
    assert (problem["key"], problem["params"]) == ("pdf.damaged", {})
    assert problem["detail"] == DocumentMessage("pdf.damaged").english, "the gateway's own sentence"
    assert pictures(folder) == []


async def test_a_page_that_many_look_at_is_drawn_once(serve: Serve, converter: Converter) -> None:
    go = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        await go.wait()
        await answering(200, PNG + b"picture")(writer)

    async with sick_gateway(answer) as slow, serve(gateway_url=slow.url) as api:
        browser = await api.browser()
        job = await converted(browser, converter)
        url = f"/api/jobs/{job}/pages/1"
        looking = [asyncio.create_task(browser.get(url)) for _ in range(5)]
        async with asyncio.timeout(30):
            while not slow.requests:
                await asyncio.sleep(0.005)
        looking[0].cancel()
        go.set()
        answers = await asyncio.gather(*looking[1:])
        assert {each.content for each in answers} == {PNG + b"picture"}
        assert (await browser.get(url)).content == PNG + b"picture"
        assert len(slow.requests) == 1
        fields = slow.requests[0][1]
        assert b'name="page"\r\n\r\n1\r\n' in fields
        assert b'name="scale"\r\n\r\n2\r\n' in fields
        assert good().pdf in fields


async def test_pages_go_with_their_document(browser: httpx.AsyncClient, converter: Converter, folder: Path) -> None:
    kept = await converted(browser, converter)
    job = await uploaded(browser, good().pdf, force="true")
    await end(converter, good())
    for each in (kept, job):
        assert (await browser.get(f"/api/jobs/{each}/pages/1?scale=1")).status_code == 200
    assert (await browser.delete(f"/api/jobs/{job}")).status_code == 204
    assert [path.parent.name for path in folder.glob("pages/**/*.png")] == [kept]
    assert (await browser.get(f"/api/jobs/{job}/pages/1?scale=1")).status_code == 404

    await converter.connection.execute("UPDATE conversions SET upload_deleted_at = now()")
    for scale in (1, 2):
        gone = await browser.get(f"/api/jobs/{kept}/pages/1?scale={scale}", headers={"If-None-Match": f'"1-{scale}"'})
        assert (gone.status_code, gone.json()["code"]) == (404, "EXPIRED")


async def test_a_document_that_is_lost_has_expired(
    browser: httpx.AsyncClient, converter: Converter, folder: Path
) -> None:
    job = await converted(browser, converter)
    for file in folder.glob("uploads/**/*.pdf"):
        file.unlink()
    gone = await browser.get(f"/api/jobs/{job}/pages/1")
    assert (gone.status_code, gone.json()["code"]) == (404, "EXPIRED")


async def test_a_page_drawn_while_its_document_is_deleted_is_not_kept(
    serve: Serve, converter: Converter, folder: Path
) -> None:
    go = asyncio.Event()

    async def answer(writer: asyncio.StreamWriter) -> None:
        await go.wait()
        await answering(200, PNG)(writer)

    async with sick_gateway(answer) as slow, serve(gateway_url=slow.url) as api:
        browser = await api.browser()
        job = await converted(browser, converter)
        looking = asyncio.create_task(browser.get(f"/api/jobs/{job}/pages/1"))
        async with asyncio.timeout(30):
            while not slow.requests:
                await asyncio.sleep(0.005)
        assert (await browser.delete(f"/api/jobs/{job}")).status_code == 204
        go.set()
        gone = await looking
        assert (gone.status_code, gone.json()["code"]) == (404, "EXPIRED")
        assert [path for path in folder.rglob("*") if path.is_file()] == []


async def test_a_busy_gateway_is_waited_for(serve: Serve, converter: Converter) -> None:
    answers = [answering(503, headers={"Retry-After": "0"}), answering(429), answering(200, PNG)]

    async def answer(writer: asyncio.StreamWriter) -> None:
        await answers.pop(0)(writer)

    async with sick_gateway(answer) as busy, serve(gateway_url=busy.url) as api:
        browser = await api.browser()
        job = await converted(browser, converter)
        assert (await browser.get(f"/api/jobs/{job}/pages/1")).content == PNG
        assert len(busy.requests) == 3


@pytest.mark.parametrize("trouble", [answering(500), answering(200, b"<html>"), breaking_off])
async def test_a_gateway_in_trouble_is_a_502_and_keeps_nothing(
    serve: Serve, converter: Converter, folder: Path, trouble: object
) -> None:
    async with sick_gateway(trouble) as sick, serve(gateway_url=sick.url) as api:  # type: ignore[arg-type]
        browser = await api.browser()
        job = await converted(browser, converter)
        answer = await browser.get(f"/api/jobs/{job}/pages/1")
        assert (answer.status_code, answer.json()["code"]) == (502, "GW_5XX")
        assert pictures(folder) == []


async def test_a_page_that_does_not_exist_has_no_version_that_anybody_could_have(
    browser: httpx.AsyncClient, converter: Converter, folder: Path
) -> None:
    job = await converted(browser, converter)
    counted = await converter.connection.fetchval("SELECT pages FROM conversions")
    for pages in (1, None):  # the conversion has counted them, or failed before that
        await converter.connection.execute("UPDATE conversions SET pages = $1", pages)
        for tag in ('"9-2"', "*"):
            answer = await browser.get(f"/api/jobs/{job}/pages/9", headers={"If-None-Match": tag})
            assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), (pages, counted)
        assert (await browser.head(f"/api/jobs/{job}/pages/9")).status_code == 404
    await converter.connection.execute("UPDATE conversions SET pages = 1")
    head = await browser.head(f"/api/jobs/{job}/pages/1")
    assert (head.status_code, head.headers["content-type"]) == (200, "image/png")
    assert pictures(folder) == [], "nothing is drawn for somebody who only asks about it"


async def test_drawing_a_page_is_traced_with_its_job(browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await converted(browser, converter)
    with traced("api") as export:
        assert (await browser.get(f"/api/jobs/{job}/pages/1")).status_code == 200
        found = export()
    call = next(span for span in found if span.name == "POST /render")
    assert (call.kind, call.failed) == ("client", False)
    assert {span.attributes["job.id"] for span in found} == {job}
    assert call.attributes["tenant.id"] == "public"

"""Files embedded in a document: taken out by a real gateway, sent to be saved, and to nobody else."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from functools import cache
from importlib.resources import files

import httpx
import pytest

from support import bad_pdfs
from support.api_fixtures import Serve
from support.api_server import Api, Converter, uploaded
from support.gateway import Gateway
from support.reviewed_invoices import Read, end, good
from waybill_gateway.content_negotiation import CONVERSION

INVOICE = (files("waybill_documents") / "mappings/en16931_ubl/golden/invoice.cii.xml").read_bytes()


@pytest.fixture
async def api(serve: Serve, gateway: Gateway) -> AsyncIterator[Api]:
    async with serve(gateway_url=gateway.url) as running:
        yield running


@cache
def hybrid(gateway: Gateway) -> Read:
    pdf = bad_pdfs.with_attachment(INVOICE)
    made = gateway.send(pdf, accept=CONVERSION, mapping="en16931_cii").json()
    xml = made.pop("xml").encode()
    return Read(pdf, json.dumps(made).encode(), xml)


async def converted(client: httpx.AsyncClient, converter: Converter, document: Read, **fields: str) -> str:
    job = await uploaded(client, document.pdf, **fields)
    await end(converter, document)
    return job


async def test_an_attachment_is_listed_and_sent_to_be_saved(
    browser: httpx.AsyncClient, converter: Converter, gateway: Gateway
) -> None:
    job = await converted(browser, converter, hybrid(gateway), mapping="en16931_cii")
    (listed,) = (await browser.get(f"/api/jobs/{job}/attachments")).json()["attachments"]
    assert (listed["name"], listed["bytes"]) == ("factur-x.xml", len(INVOICE))
    answer = await browser.get(listed["links"]["download"])
    assert (answer.status_code, answer.content) == (200, INVOICE), answer.text
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "factur-x.xml" in answer.headers["content-disposition"]
    page = (await browser.get(f"/review/{job}")).text
    assert listed["links"]["download"] in page
    assert "1 attachment" in page


async def test_what_is_not_there_is_missing(browser: httpx.AsyncClient, converter: Converter, gateway: Gateway) -> None:
    with_one = await converted(browser, converter, hybrid(gateway), mapping="en16931_cii")
    for path in (f"{with_one}/attachments/2", f"{with_one}/attachments/0", f"{with_one}/attachments/x"):
        assert (await browser.get(f"/api/jobs/{path}")).status_code in (404, 422)
    without = await converted(browser, converter, good())
    assert (await browser.get(f"/api/jobs/{without}/attachments")).json() == {"attachments": []}
    assert (await browser.get(f"/api/jobs/{without}/attachments/1")).status_code == 404


async def test_a_stranger_hears_of_no_attachment(
    api: Api, browser: httpx.AsyncClient, converter: Converter, gateway: Gateway
) -> None:
    job = await converted(browser, converter, hybrid(gateway), mapping="en16931_cii")
    for stranger in (api.client(), await api.browser(), api.client(await api.key("other"))):
        for path in ("attachments", "attachments/1"):
            answer = await stranger.get(f"/api/jobs/{job}/{path}")
            assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")


async def test_attachments_go_with_the_document(
    browser: httpx.AsyncClient, converter: Converter, gateway: Gateway
) -> None:
    job = await converted(browser, converter, hybrid(gateway), mapping="en16931_cii")
    await converter.connection.execute("UPDATE conversions SET upload_deleted_at = now()")
    answer = await browser.get(f"/api/jobs/{job}/attachments/1")
    assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")

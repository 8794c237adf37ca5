"""Reviewing over HTTP: what was read, corrections, differences; each for its owner alone."""

from __future__ import annotations

import asyncio
import io
import json
import zipfile
from typing import Any

import httpx
import pytest
from lxml import etree

from support.api_server import Api, Converter, uploaded
from support.records import pt_simon_loaded
from support.reviewed_invoices import RIGHT, broken, end, good
from waybill.security import ADMIN


@pytest.fixture
async def job(browser: httpx.AsyncClient, converter: Converter) -> str:
    """The browser's invoice, converted."""
    found = await uploaded(browser, good().pdf)
    await end(converter, good())
    return found


def corrections(base: int, accept: bool = False, preview: bool = False, **values: str | None) -> dict[str, Any]:
    changes = [{"path": path, "value": value} for path, value in values.items()]
    return {"base": base, "changes": changes, "accept": accept, "preview": preview}


async def correct(client: httpx.AsyncClient, job: str, base: int, **values: Any) -> dict[str, Any]:
    answer = await client.post(f"/api/jobs/{job}/revisions", json=corrections(base, **values))
    assert answer.status_code == 201, answer.text
    saved: dict[str, Any] = answer.json()
    return saved


async def test_an_invoice_is_corrected_and_its_revisions_stay(browser: httpx.AsyncClient, job: str) -> None:
    shown = (await browser.get(f"/api/jobs/{job}")).json()
    assert (shown["revision"], shown["links"]["revisions"]) == (0, f"/api/jobs/{job}/revisions")
    assert (await browser.get(shown["links"]["revisions"])).json() == {"latest": 0, "revisions": []}

    answer = await browser.post(f"/api/jobs/{job}/revisions", json=corrections(0, buyer_name="PT Baru"))

    assert answer.status_code == 201, answer.text
    saved = answer.json()
    assert answer.headers["location"] == saved["links"]["self"] == f"/api/jobs/{job}/revisions/1"
    assert (saved["number"], saved["author"], saved["accepted"]) == (1, "session", None)
    assert saved["changes"] == [
        {
            "path": "buyer_name",
            "from": good().data["buyer_name"],
            "to": "PT Baru",
            "rule": "fields.buyer_name",
            "typed": "PT Baru",
        }
    ]
    assert (await browser.get(f"/api/jobs/{job}/revisions")).json() == {"latest": 1, "revisions": [saved]}
    assert (await browser.get(f"/api/jobs/{job}")).json()["revision"] == 1
    latest = await browser.get(f"/api/jobs/{job}/download")
    assert etree.fromstring(latest.content).findtext(".//BuyerName") == "PT Baru"
    archive = zipfile.ZipFile(io.BytesIO((await browser.get("/api/jobs/download")).content))
    assert [archive.read(name) for name in archive.namelist()] == [latest.content]
    assert (await browser.get(f"/api/jobs/{job}/provenance")).json()["data"]["buyer_name"] == "PT Baru"

    record = await browser.get(saved["links"]["self"])
    assert record.headers["content-type"] == "application/json"
    assert record.json() == (await browser.get(f"/api/jobs/{job}/provenance")).json()
    again = await browser.get(saved["links"]["self"], headers={"If-None-Match": record.headers["etag"]})
    assert again.status_code == 304
    file = await browser.get(saved["links"]["download"])
    assert file.content == latest.content
    assert f'filename="invoice-{job}-r1.xml"' in file.headers["content-disposition"]
    assert (await browser.get(f"/api/jobs/{job}/revisions/0/download")).content == good().xml
    assert (await browser.get(f"/api/jobs/{job}/revisions/0")).content == good().record
    difference = {"path": "buyer_name", "from": good().data["buyer_name"], "to": "PT Baru"}
    diff = (await browser.get(saved["links"]["diff"])).json()
    assert diff == {"before": 0, "after": 1, "differences": [difference]}
    for missing in ("revisions/2", "revisions/2/download", "revisions/0/diff/2"):
        assert (await browser.get(f"/api/jobs/{job}/{missing}")).status_code == 404, missing


async def test_a_preview_tells_and_keeps_nothing(browser: httpx.AsyncClient, job: str) -> None:
    answer = await browser.post(
        f"/api/jobs/{job}/revisions", json=corrections(0, preview=True, buyer_name=None, due_date="soon")
    )
    assert answer.status_code == 200, answer.text
    preview = answer.json()
    assert [change["to"] for change in preview["changes"]] == [None]
    assert [refused["path"] for refused in preview["refused"]] == ["due_date"]
    assert [finding["path"] for finding in preview["findings"]] == ["buyer_name"]
    assert {"path": "buyer_name", "value": None, "confidence": 100} in preview["values"]
    assert [check["name"] for check in preview["checks"]] == list(pt_simon_loaded().mapping.checks)
    assert (await browser.get(f"/api/jobs/{job}/revisions")).json()["latest"] == 0


async def test_what_failed_is_complete_once_it_is_corrected(browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser, broken().pdf)
    await end(converter, broken())
    failed = (await browser.get(f"/api/jobs/{job}")).json()
    assert (failed["status"], failed["links"]["revisions"]) == ("failed", f"/api/jobs/{job}/revisions")
    assert (await browser.get(f"/api/jobs/{job}/revisions/0")).json()["data"] == broken().data
    none = await browser.get(f"/api/jobs/{job}/revisions/0/download")
    assert (none.status_code, none.json()["code"]) == (404, "NOT_FOUND")

    wrong = await browser.post(f"/api/jobs/{job}/revisions", json=corrections(0, buyer_name="PT Baru"))
    assert (wrong.status_code, wrong.json()["code"]) == (422, "VALIDATION_ERROR")
    assert [finding["code"] for finding in wrong.json()["findings"]] == ["check_failed"] * 3
    unread = await browser.post(f"/api/jobs/{job}/revisions", json=corrections(0, accept=True, subtotal="much"))
    assert (unread.status_code, [each["path"] for each in unread.json()["refused"]]) == (422, ["subtotal"])

    await correct(browser, job, 0, subtotal=RIGHT)
    done = (await browser.get(f"/api/jobs/{job}")).json()
    assert (done["status"], done["error"], done["revision"]) == ("complete", None, 1)
    assert (await browser.get(done["links"]["download"])).status_code == 200


async def test_whoever_comes_second_hears_who_was_first(api: Api, converter: Converter) -> None:
    ann, bob = api.client(await api.key("acme")), api.client(await api.key("acme"))
    job = await uploaded(ann, good().pdf)
    await end(converter, good())
    body = [corrections(0, buyer_name="A", number="1"), corrections(0, buyer_name="B", date="2025-08-07")]
    url = f"/api/jobs/{job}/revisions"
    answers = await asyncio.gather(ann.post(url, json=body[0]), bob.post(url, json=body[1]))
    assert sorted(answer.status_code for answer in answers) == [201, 409]
    first, second = sorted(answers, key=lambda answer: answer.status_code)
    problem = second.json()
    assert second.headers["content-type"] == "application/problem+json"
    assert (problem["code"], problem["paths"]) == ("CONFLICT", ["buyer_name"])
    assert problem["latest"] == first.json()
    assert first.json()["author"] == "key:test"
    assert problem["detail"].startswith("Revision 1 was saved in the meantime, by key:test.")
    assert len((await ann.get(url)).json()["revisions"]) == 1


async def test_corrected_values_stay_text(browser: httpx.AsyncClient, job: str) -> None:
    nasty = {
        "buyer_name": "<script>alert(1)</script>",
        "buyer_address": "]]></BuyerAdress><Evil/>&lt;&amp;&#0;<!--",
        "number": "\"'><img src=x onerror=alert(1)>",
    }
    await correct(browser, job, 0, **nasty)
    file = await browser.get(f"/api/jobs/{job}/download")
    assert file.headers["content-disposition"].startswith("attachment")
    xml = etree.fromstring(file.content)
    assert [xml.findtext(f".//{name}") for name in ("BuyerName", "BuyerAdress", "RefDesc")] == list(nasty.values())
    assert not xml.findall(".//Evil")
    assert b"<script" not in file.content
    for path in ("revisions", "revisions/1", "revisions/0/diff/1", "provenance"):
        answer = await browser.get(f"/api/jobs/{job}/{path}")
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert nasty["buyer_name"] in json.dumps(answer.json())
    page = await browser.get("/queue")
    assert "alert(1)" not in page.text


BAD: list[dict[str, Any]] = [
    {},
    {"base": 0},
    {"base": -1, "changes": []},
    {"base": 2**31, "changes": []},
    {"base": 1, "changes": []},
    {"base": 0, "changes": []},
    {"base": 0, "changes": [], "extra": 1},
    {"base": 0, "changes": [{"path": "number"}]},
    {"base": 0, "changes": [{"path": "number", "value": 1}]},
    {"base": 0, "changes": [{"path": "x" * 201, "value": ""}]},
    {"base": 0, "changes": [{"path": "number", "value": "x" * 10_001}]},
    {"base": 0, "changes": [{"path": "number", "value": "\0"}]},
    {"base": 0, "changes": [{"path": "\0", "value": "x"}], "preview": True},
    {"base": 0, "changes": [{"path": "number", "value": "\ud800"}], "preview": True},
    {"base": 0, "changes": [{"path": "\udc00", "value": "x"}]},
    {"base": 0, "changes": [{"path": "number", "value": "\x1b"}]},
    {"base": 0, "changes": [{"path": "lines[99999].name", "value": "x"}]},
    {"base": 0, "changes": [{"path": "n", "value": ""}] * 1001},
]


async def test_what_makes_no_correction_is_refused(browser: httpx.AsyncClient, job: str) -> None:
    for body in BAD:
        answer = await browser.post(f"/api/jobs/{job}/revisions", content=json.dumps(body))
        assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR"), (body, answer.text)
    assert (await browser.post(f"/api/jobs/{job}/revisions", content=b"{")).status_code == 422
    for path in ("revisions/-1", "revisions/x", "revisions/2147483648", "revisions/0/diff/-1", "pages/0", "pages/x"):
        assert (await browser.get(f"/api/jobs/{job}/{path}")).status_code == 422, path
    assert (await browser.get(f"/api/jobs/{job}/revisions")).json() == {"latest": 0, "revisions": []}


ENDPOINTS = [
    ("GET", "revisions", None),
    ("GET", "revisions/0", None),
    ("GET", "revisions/1", None),
    ("GET", "revisions/0/download", None),
    ("GET", "revisions/1/download", None),
    ("GET", "revisions/0/diff/1", None),
    ("GET", "pages/1", None),
    ("GET", "pages/1?scale=1", None),
    ("POST", "revisions", corrections(1, preview=True, buyer_name="x")),
    ("POST", "revisions", corrections(0, preview=True, buyer_name="x")),
    ("POST", "revisions", corrections(1, buyer_name="x")),
    ("POST", "revisions", corrections(0, accept=True, buyer_name="x")),
]


async def test_every_endpoint_for_everybody(api: Api, converter: Converter) -> None:
    session, key = await api.browser(), await api.key("acme")
    strangers = {
        "no cookie": api.client(),
        "other session": await api.browser(),
        "other tenant's key": api.client(await api.key("other")),
        "other tenant's admin": api.client(await api.key("boss", ADMIN)),
        "forged cookie": api.client(cookies={"waybill_session": "1.eyJzIjoiMDAifQ.AAAA"}),
    }
    for owner, others in ((session, [api.client(key)]), (api.client(key), [session])):
        job = await uploaded(owner, good().pdf)
        await end(converter, good())
        await correct(owner, job, 0, buyer_name="PT Rahasia")
        before = (await owner.get(f"/api/jobs/{job}/revisions")).json()
        for stranger in (*strangers.values(), *others):
            admin = stranger is strangers["other tenant's admin"]
            for method, path, body in ENDPOINTS:
                if admin and method == "GET":  # it reads like the owner
                    assert path.startswith("pages") or (await stranger.get(f"/api/jobs/{job}/{path}")).is_success
                    continue
                answer = await stranger.request(method, f"/api/jobs/{job}/{path}", json=body)
                assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND"), (method, path, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
                assert "Rahasia" not in answer.text
        assert (await owner.get(f"/api/jobs/{job}/revisions")).json() == before


async def test_a_key_corrects_only_if_it_may(api: Api, converter: Converter) -> None:
    full = api.client(await api.key("acme"))
    reads = api.client(await api.key("acme", "convert:read"))
    writes = api.client(await api.key("acme", "convert:write"))
    job = await uploaded(full, good().pdf)
    await end(converter, good())
    for method, path, body in ENDPOINTS:
        # Whoever corrects is shown what there was, so a key that may only write is not enough for that.
        for refused in [writes] if method == "GET" else [reads, writes]:
            answer = await refused.request(method, f"/api/jobs/{job}/{path}", json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN"), path
    assert (await full.post(f"/api/jobs/{job}/revisions", json=corrections(0, number="1"))).status_code == 201
    assert (await reads.get(f"/api/jobs/{job}/revisions")).json()["latest"] == 1


async def test_another_sites_page_corrects_nothing(browser: httpx.AsyncClient, job: str) -> None:
    answer = await browser.post(
        f"/api/jobs/{job}/revisions", json=corrections(0, number="1"), headers={"Sec-Fetch-Site": "cross-site"}
    )
    assert answer.status_code == 403


async def test_what_is_not_there_any_more_has_expired(
    browser: httpx.AsyncClient, job: str, converter: Converter
) -> None:
    await correct(browser, job, 0, number="1")
    await converter.connection.execute("UPDATE conversions SET status = 'expired'")
    for method, path, body in ENDPOINTS:
        answer = await browser.request(method, f"/api/jobs/{job}/{path}", json=body)
        assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED"), path


async def test_open_pages_hear_of_a_correction(browser: httpx.AsyncClient, job: str) -> None:
    since = (await browser.get("/api/jobs")).json()["since"]
    await correct(browser, job, 0, number="1")
    changed = (await browser.get(f"/api/jobs?since={since}")).json()["jobs"]
    assert [(each["id"], each["revision"]) for each in changed] == [(job, 1)]


async def test_many_corrections_may_be_two_megabytes(browser: httpx.AsyncClient, job: str) -> None:
    long = {"base": 0, "changes": [{"path": "buyer_name", "value": "x" * 9_000}] * 200, "preview": True}
    answer = await browser.post(f"/api/jobs/{job}/revisions", json=long)
    assert answer.status_code == 200, answer.text
    assert (await browser.post(f"/api/jobs/{job}/revisions", json={**long, "changes": []})).status_code == 200
    form = {"base": "0", "do": "check", **{f"v.lines[{at}].description": "x" * 900 for at in range(1000)}}
    assert (await browser.post(f"/review/{job}", data=form)).status_code in (200, 422)
    for path in (f"/api/jobs/{job}/revisions", f"/review/{job}", f"/review/{job}/check"):
        refused = await browser.post(path, content=b"x" * (2 * 2**20 + 1))
        assert (refused.status_code, refused.json()["code"]) == (413, "TOO_LARGE")
        assert refused.json()["params"] == {"kilobytes": 2048}

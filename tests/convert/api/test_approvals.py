"""A result in doubt over HTTP: kept back, shown on its page, and given out once a person has looked."""

from __future__ import annotations

import re

import httpx
import pytest

from support.api_server import Api, Converter, uploaded
from support.reviewed_invoices import doubtful, end, good

LANGUAGE = {"Accept-Language": "id"}


@pytest.fixture
async def job(browser: httpx.AsyncClient, converter: Converter) -> str:
    """The browser's invoice, of which the number and the second line's name are in doubt."""
    found = await uploaded(browser, doubtful().pdf)
    await end(converter, doubtful())
    return found


async def test_it_is_kept_back_until_it_is_approved(browser: httpx.AsyncClient, job: str) -> None:
    shown = (await browser.get(f"/api/jobs/{job}")).json()
    assert shown["status"] == "needs_review"
    assert shown["review"] == {
        "below": 60,
        "count": 2,
        "values": ["number", "lines[1].name"],
        "approved_at": None,
        "approved_by": None,
    }
    links = shown["links"]
    assert (links["download"], links["review"], links["approve"]) == (
        None,
        f"/review/{job}",
        f"/api/jobs/{job}/approve",
    )
    listed = (await browser.get("/api/jobs", params={"status": "needs_review"})).json()
    assert [one["id"] for one in listed["jobs"]] == [job]
    assert (listed["active_count"], listed["counts"]["needs_review"], listed["counts"]["complete"]) == (0, 1, 0)
    for way in (f"{job}/download", f"{job}/revisions/0/download", f"download?ids={job}", "download"):
        for method in ("GET", "HEAD"):
            answer = await browser.request(method, f"/api/jobs/{way}")
            assert answer.status_code == 409, way
        problem = (await browser.get(f"/api/jobs/{way}")).json()
        assert problem["code"] == "NOT_READY"
        assert problem["review"] in (f"/review/{job}", "/queue?status=needs_review")
        assert "a person has to look" in problem["detail"].lower()
    assert (await browser.get(f"/api/jobs/{job}/revisions/0")).json()["review"]["doubts"] == ["number", "lines[1].name"]
    explained = (await browser.get(f"/api/jobs/{job}/explain")).json()
    assert (explained["reason"], explained["key"]) == ("ended", "convert.waits_for_review")

    for _ in range(2):
        answer = await browser.post(links["approve"], json={"base": 0})
        assert answer.status_code == 200, answer.text
        assert answer.json()["status"] == "complete"
        assert answer.json()["review"]["approved_by"] == "session"
        assert answer.json()["links"]["approve"] is None
    for way in (f"{job}/download", f"{job}/revisions/0/download"):
        assert (await browser.get(f"/api/jobs/{way}")).content == good().xml


async def test_only_who_may_correct_may_approve(api: Api, browser: httpx.AsyncClient, job: str) -> None:
    stranger = api.client(await api.key("globex"))
    foreign = await stranger.post(f"/api/jobs/{job}/approve", json={"base": 0})
    missing = await stranger.post("/api/jobs/01890000-0000-7000-8000-000000000001/approve", json={"base": 0})
    assert (foreign.status_code, foreign.json()) == (404, missing.json())
    for permission in ("convert:read", "convert:write"):
        half = api.client(await api.key("globex", permission))
        assert (await half.post(f"/api/jobs/{job}/approve", json={"base": 0})).status_code == 403
    assert (await api.client().post(f"/api/jobs/{job}/approve", json={"base": 0})).status_code in (401, 404)
    for wrong in ({}, {"base": -1}, {"base": 2**40}, {"base": 0, "more": 1}, {"base": "x"}):
        assert (await browser.post(f"/api/jobs/{job}/approve", json=wrong)).status_code == 422
    assert (await browser.get(f"/api/jobs/{job}")).json()["status"] == "needs_review"


async def test_whoever_approves_what_was_corrected_meanwhile_is_told(browser: httpx.AsyncClient, job: str) -> None:
    correction = {"base": 0, "changes": [{"path": "number", "value": "7"}]}
    assert (await browser.post(f"/api/jobs/{job}/revisions", json=correction)).status_code == 201
    assert (await browser.get(f"/api/jobs/{job}")).json()["review"]["approved_by"] == "session"
    late = await browser.post(f"/api/jobs/{job}/approve", json={"base": 0})
    assert late.status_code == 409
    assert (late.json()["code"], late.json()["latest"]["number"]) == ("CONFLICT", 1)


async def test_the_page_says_what_is_in_doubt_and_a_form_approves_it(browser: httpx.AsyncClient, job: str) -> None:
    page = (await browser.get(f"/review/{job}")).text
    assert "2 values are in doubt" in page
    assert re.findall(r'<a href="#(v-[\w.]+)" data-goes', page) == ["v-number", "v-lines.1.name"]
    assert re.search(r'id="v-lines\.1\.name" class="v doubt"', page)
    assert "Looks right" in page
    assert "/download" not in page
    assert "2 nilai masih meragukan" in (await browser.get(f"/review/{job}", headers=LANGUAGE)).text
    queue = (await browser.get("/queue")).text
    assert "Please check" in queue
    assert f'href="/review/{job}"' in queue
    assert "Mohon diperiksa" in (await browser.get("/queue", headers=LANGUAGE)).text

    answer = await browser.post(f"/review/{job}", data={"base": "0", "do": "approve"})
    assert (answer.status_code, answer.headers["location"]) == (303, f"/review/{job}")
    page = (await browser.get(f"/review/{job}")).text
    assert "in doubt" not in page
    assert "checked by this browser" in page
    assert f"/api/jobs/{job}/revisions/0/download" in page


async def test_whoever_corrected_something_and_says_that_it_looks_right_saves_the_correction(
    browser: httpx.AsyncClient, job: str
) -> None:
    checked = await browser.post(f"/review/{job}", data={"base": "0", "do": "check", "v.number": "7"})
    assert "1 value is in doubt" in checked.text, "what is being corrected is not in doubt any more"
    answer = await browser.post(f"/review/{job}", data={"base": "0", "do": "approve", "v.number": "7"})
    assert answer.status_code == 303
    shown = (await browser.get(f"/api/jobs/{job}")).json()
    assert (shown["status"], shown["revision"]) == ("complete", 1)
    assert (await browser.get(f"/api/jobs/{job}/revisions/1")).json()["data"]["number"] == "7"


async def test_whoever_may_only_read_sees_that_somebody_else_has_to_look(api: Api, converter: Converter) -> None:
    job = await uploaded(api.client(await api.key("acme")), doubtful().pdf)
    await end(converter, doubtful())
    reader = api.client(await api.key("acme", "convert:read"))
    page = (await reader.get(f"/review/{job}")).text
    assert "Somebody who may correct documents has to look" in page
    assert "Looks right" not in page

"""Problem documents for programs, and the same as pages for people, in their language."""

from __future__ import annotations

import uuid

import httpx

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


async def test_people_get_problem_pages_and_programs_get_documents(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/no/such/page", headers=HTML)
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Nothing here" in page.text
    document = await browser.get("/no/such/page")
    assert document.headers["content-type"] == "application/problem+json"
    missing = await browser.get(f"/api/jobs/{uuid.uuid4()}/download", headers=HTML)
    assert (missing.status_code, missing.headers["content-type"]) == (404, "text/html; charset=utf-8")
    live = await browser.get("/no/such/page", headers=HTML | {"HX-Request": "true"})
    assert live.headers["content-type"] == "application/problem+json"


async def test_a_key_that_is_none_is_asked_for_again(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/session", data={"key": "wb_<b>"}, headers=HTML)
    assert answer.status_code == 401
    assert "This is not a valid API key." in answer.text
    assert 'action="/session"' in answer.text
    assert "wb_<b>" not in answer.text


async def test_problems_are_told_in_the_reader_s_language_and_documents_in_english(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/no/such/page", headers=HTML | {"Accept-Language": "id"})
    assert page.status_code == 404
    assert "<h1>Tidak ditemukan</h1>" in page.text
    assert "Yang Anda cari tidak ada di sini." in page.text
    document = await browser.get("/no/such/page", headers={"Accept-Language": "id"})
    assert document.json()["detail"] == "This does not exist."
    denied = await browser.post("/session", data={"key": "wb_x"}, headers=HTML | {"Accept-Language": "id"})
    assert denied.status_code == 401
    assert "Ini bukan kunci API yang berlaku." in denied.text


async def test_a_document_has_the_key_and_parameters_of_its_sentence(browser: httpx.AsyncClient) -> None:
    plain = (await browser.get("/no/such/page")).json()
    assert (plain["code"], plain["key"], plain["params"]) == ("NOT_FOUND", "errors.NOT_FOUND", {})
    large = (await browser.post("/session", content=b"x" * 70_000)).json()
    assert (large["key"], large["params"]) == ("request.too_large_kb", {"kilobytes": 64})
    assert large["detail"] == "This request is larger than 64 KB."
    wrong = (await browser.put("/queue")).json()
    assert (wrong["status"], wrong["key"]) == (405, "request.method")

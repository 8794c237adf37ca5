"""Which language a reader gets: the chosen one, else what the browser asks for."""

from __future__ import annotations

import httpx
import pytest

from waybill.web.languages.preference import asked_for


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ("", "en"),
        ("id", "id"),
        ("id-ID,id;q=0.9,en-US;q=0.8", "id"),
        ("in-ID", "id"),
        ("en-US,id;q=0.9", "en"),
        ("fr-FR, id;q=0.5, en;q=0.3", "id"),
        ("fr-FR,nl;q=0.5", "en"),
        ("id;q=0, en;q=0.1", "en"),
        ("id;q=nonsense", "en"),
        ("," * 100_000 + "id", "en"),
    ],
)
def test_the_browser_s_languages(header: str, code: str) -> None:
    assert asked_for(header).code == code


async def test_what_was_chosen_wins_over_what_the_browser_asks_for(browser: httpx.AsyncClient) -> None:
    asked = await browser.get("/queue", headers={"Accept-Language": "id"})
    assert '<html lang="id"' in asked.text
    assert "<h1>Antrean</h1>" in asked.text
    assert asked.headers["content-language"] == "id"
    assert {"accept-language", "cookie"} <= {each.strip().lower() for each in asked.headers["vary"].split(",")}
    chosen = await browser.post("/language", data={"language": "en", "back": "/queue?q=a"})
    assert (chosen.status_code, chosen.headers["location"]) == (303, "/queue?q=a")
    assert '<html lang="en"' in (await browser.get("/queue", headers={"Accept-Language": "id"})).text
    forgotten = await browser.post("/language", data={"language": "xx", "back": "//evil.example"})
    assert forgotten.headers["location"] == "/"
    assert '<html lang="id"' in (await browser.get("/queue", headers={"Accept-Language": "id"})).text
    refused = await browser.post("/language", data={"language": "id"}, headers={"Sec-Fetch-Site": "cross-site"})
    assert refused.status_code == 403

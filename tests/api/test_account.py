"""Which colours a browser likes, and that no form leads to another site."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize("back", ["//evil.example", "https://evil.example", "/\\evil.example", "evil", "/\t/evil", ""])
async def test_colours_never_lead_elsewhere(browser: httpx.AsyncClient, back: str) -> None:
    answer = await browser.post("/theme", data={"theme": "dark", "back": back})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert "waybill_theme=dark" in answer.headers["set-cookie"]


async def test_colours_lead_back_where_one_was(browser: httpx.AsyncClient) -> None:
    answer = await browser.post("/theme", data={"theme": "odd", "back": "/queue?status=failed"})
    assert answer.headers["location"] == "/queue?status=failed"
    assert 'waybill_theme=""' in answer.headers["set-cookie"]

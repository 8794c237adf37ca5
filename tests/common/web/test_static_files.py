"""Static files: kept for ever under an address that changes with them, and what we vendor has its licence."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import httpx

WEB = Path(str(files("waybill.web")))


async def test_static_files_are_kept_for_ever_under_their_version(browser: httpx.AsyncClient) -> None:
    page = await browser.get("/")
    sheet = re.search(r'href="(/static/[^"]+/style.css)"', page.text)
    assert sheet is not None
    answer = await browser.get(sheet[1])
    assert answer.headers["content-type"].startswith("text/css")
    assert "immutable" in answer.headers["cache-control"]
    other = await browser.get("/static/another-version/style.css")
    assert other.status_code == 200
    assert other.headers["cache-control"] == "no-cache"
    for name in ("../layout.py", "..%2Flayout.py", "vendor/", "nothing.css"):
        assert (await browser.get(f"/static/x/{name}", follow_redirects=True)).status_code == 404


def test_what_is_vendored_has_its_licence() -> None:
    vendored = WEB / "static" / "vendor"
    for script in vendored.glob("*.js"):
        name = re.sub(r"-\d.*", "", script.name)
        assert "Permission to use, copy, modify" in (vendored / f"{name}.LICENSE.txt").read_text()

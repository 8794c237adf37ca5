"""`docs/pipelines.md` builds a pipeline from nothing. This test does what the page says, outside the repository."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import PATIENCE, eventually
from support.stack import Stack

pytestmark = pytest.mark.timeout(300)

PAGE = Path(__file__).parents[2] / "docs" / "pipelines.md"
FILE = re.compile(r"^\*\*`([^`]+)`\*\*\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page's package, built and installed into a folder of its own."""
    source, target = tmp_path_factory.mktemp("waybill-notes"), tmp_path_factory.mktemp("installed")
    files = FILE.findall(PAGE.read_text())
    assert len(files) == 15
    for name, text in files:
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    touch = re.search(r"^touch (.*)$", PAGE.read_text(), re.MULTILINE)
    assert touch is not None
    for name in touch[1].split():
        (source / name).touch()
    uv = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--no-build-isolation"]
    subprocess.run([*uv, "--python", sys.executable, "--target", str(target), str(source)], check=True)
    return target


@pytest.fixture
def stack(installed: Path, empty_database_url: str, tmp_path: Path) -> Iterator[Stack]:
    stack = Stack(empty_database_url, tmp_path, shared_imports=False, PYTHONPATH=str(installed))
    yield stack
    stack.close()


def waybill(stack: Stack, *arguments: str, **settings: str) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
    program = [sys.executable, "-c", "from waybill_cli.main import main; main()", *arguments]
    environment |= {**stack.settings, **settings}
    ran = subprocess.run(program, env=environment, capture_output=True, text=True, check=False, cwd=stack.folder)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


async def test_the_pipeline_of_the_page_is_built_installed_and_runs(stack: Stack) -> None:
    waybill(stack, "migrate")
    assert "WAYBILL_NOTES_TTL_DAYS" in waybill(stack, "config", "reference")
    await stack.start_all("api", "gateway", "worker")
    async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE, trust_env=False) as client:
        written = await client.post("/api/notes", json={"text": "three small words"})
        assert written.status_code == 201, written.text
        assert (await client.post("/api/notes", json={"text": ""})).status_code == 422

        async def counted() -> bool:
            return [note["words"] for note in (await client.get("/api/notes")).json()] == [3]

        await eventually(counted, within=PATIENCE, what="the worker counts the words")
        page = await client.get("/notes")
        assert "three small words" in page.text
        assert "3 words" in page.text
        assert 'href="/notes" aria-current="page"' in page.text
        assert "3 kata" in (await client.get("/notes", headers={"Accept-Language": "id"})).text
        assert "notes" in (await client.get("/api/openapi.json")).text
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE, trust_env=False) as stranger:
            assert (await stranger.get("/api/notes")).json() == []

        async def heard(text: str) -> None:
            async def noted() -> bool:
                notes = (await client.get("/api/notes")).json()
                return [(note["text"], note["words"]) for note in notes][:1] == [(text, len(text.split()))]

            what = f"the listener notes {text!r}, and the worker counts its words"
            await eventually(noted, within=PATIENCE, what=what)

        files = {"file": ("invoice.pdf", print_invoice(make_invoice(1, 3), REFERENCE), "application/pdf")}
        uploaded = await client.post("/api/upload", files=files)
        assert uploaded.status_code == 201, uploaded.text
        await heard("Received invoice.pdf")
        job = f"/api/jobs/{uploaded.json()['job']['id']}"

        async def complete() -> bool:
            return bool((await client.get(job)).json()["status"] == "complete")

        await eventually(complete, within=PATIENCE, what="the invoice is converted")
        correction = {"base": 0, "changes": [{"path": "buyer_name", "value": "PT Baru"}]}
        assert (await client.post(f"{job}/revisions", json=correction)).status_code == 201
        await heard("Corrected, revision 1")
        async with httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE, trust_env=False) as forgotten:
            assert (await forgotten.post("/api/notes", json={"text": "mine"})).status_code == 201

            async def ended() -> bool:  # a job that runs is erased only when it has stopped
                return [note["words"] for note in (await forgotten.get("/api/notes")).json()] == [1]

            await eventually(ended, within=PATIENCE, what="the worker counts the last note")
            erased = (await forgotten.request("DELETE", "/api/session")).json()
            assert erased == {"finished": True, "jobs": 1, "files": 0}
        assert "3 notes" in waybill(stack, "janitor", "run", WAYBILL_NOTES_TTL_DAYS="0")
        assert (await client.get("/api/notes")).json() == []
        waybill(stack, "janitor", "run", WAYBILL_XML_TTL_DAYS="0")
        await heard("A result has expired")

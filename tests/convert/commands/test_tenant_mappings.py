"""`waybill mapping push`, `test`, `publish`, `retire`, `pull` and `ls`: the end of the tutorial, as it stands there."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from support.api_server import Api, serving
from support.command_line import Ran, Waybill
from support.gateway import Gateway
from support.workbooks import packed, sheet, workbook_parts
from waybill.db import Database
from waybill.security import ADMIN

SECRET = "s" * 40
PAGE = (Path(__file__).parents[3] / "docs/mappings.md").read_text(encoding="utf-8")
LAST_FILE = re.findall(r"```json\n(\{.*?)```", PAGE.partition("\n## Reference\n")[0], re.DOTALL)[-1]
LAST_STEP = re.findall(r"### Step 8.*?```console\n(.*?)```", PAGE, re.DOTALL)[0]
PERMISSIONS = ("convert:read", "convert:write", "mappings:read", "mappings:write")

Call = Callable[..., Awaitable[Ran]]


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("trusted"), gateway_secret=SECRET, gateway_open="false")
    yield gateway
    gateway.close()


@pytest.fixture
async def api(database_url: str, db: Database, tmp_path: Path, gateway: Gateway) -> AsyncIterator[Api]:
    given = {"database_url": database_url, "storage_min_free_mb": 0, "home": str(tmp_path / "home")}
    with capture_logs():
        async with serving(
            {**given, "gateway_url": gateway.url, "gateway_secret": SECRET}, db, tmp_path / "storage"
        ) as running:
            yield running


@pytest.fixture
def call(bare: Waybill, api: Api) -> Call:
    async def run(*arguments: object, key: str = "", admin: bool = False) -> Ran:
        made = key or await api.key("boss" if admin else "acme", *((ADMIN,) if admin else PERMISSIONS))
        return await bare(*arguments, WAYBILL_API_KEY=made, WAYBILL_API_URL=api.url)

    return run


@pytest.fixture
def folder(tmp_path: Path, shared_data: Path) -> Path:
    """The mapping of the tutorial, with its invoice as a sample."""
    made = tmp_path / "hosting_v1"
    (made / "samples").mkdir(parents=True)
    (made / "mapping.json").write_text(LAST_FILE)
    for place in (made / "samples", tmp_path):
        shutil.copy(shared_data / "invoices/vendors/QualityHosting.pdf", place)
    return made


async def test_the_tutorial_ends_with_the_mapping_in_use(call: Call, api: Api, folder: Path) -> None:
    shown: list[str] = []
    for line in LAST_STEP.splitlines():
        if not line.startswith("$ waybill "):
            assert line in shown, (line, shown)
            continue
        ran = await call(*line.removeprefix("$ waybill ").split())
        assert ran.code == 0, (line, ran.out, ran.err)
        shown = ran.lines
    client = api.client(await api.key("acme"))
    (job,) = (await client.get("/api/jobs")).json()["jobs"]
    assert (job["mapping"], job["original_name"]) == ("hosting_v1", "QualityHosting.pdf")
    assert "hosting_v1" in (await call("mapping", "ls")).out


async def test_a_sample_that_fails_is_shown_and_keeps_the_draft_from_being_published(call: Call, folder: Path) -> None:
    (folder / "samples/QualityHosting.json").write_text(json.dumps({"number": "wrong"}))
    assert (await call("mapping", "push", folder)).code == 0
    for command, code in (("test", 1), ("publish", 1)):
        ran = await call("mapping", command, "hosting_v1")
        assert ran.code == code
        assert "✗ QualityHosting" in ran.out
        assert "instead of 'wrong'" in ran.out
    assert re.search(r"hosting_v1 +draft", (await call("mapping", "ls")).out)


async def test_a_mapping_comes_back_as_it_was_pushed(call: Call, folder: Path, tmp_path: Path) -> None:
    await call("mapping", "push", folder)
    assert (await call("mapping", "pull", "hosting_v1", "-o", tmp_path / "pulled")).code == 0
    assert (tmp_path / "pulled/hosting_v1/mapping.json").read_bytes() == (folder / "mapping.json").read_bytes()
    assert (await call("mapping", "publish", "hosting_v1")).code == 0
    assert (await call("mapping", "retire", "hosting_v1")).out == "hosting_v1 is retired.\n"
    assert re.search(r"hosting_v1 +retired", (await call("mapping", "ls")).out)


async def test_what_is_refused_is_said_with_all_mistakes(call: Call, bare: Waybill, folder: Path) -> None:
    assert "needs an API key" in (await bare("mapping", "push", folder)).err
    refused = await call("mapping", "push", folder, "--shared")
    assert (refused.code, "admin" in refused.err) == (1, True)
    assert (await call("mapping", "push", folder, "--shared", admin=True)).code == 0
    wrong = json.loads(LAST_FILE)
    wrong["fields"] = {"a": {"labl": "A"}, "b": {"label": "B", "type": "number"}}
    (folder / "mapping.json").write_text(json.dumps(wrong))
    ran = await call("mapping", "push", folder)
    assert ran.code == 1
    assert "fields.a.labl" in ran.err
    assert "fields.b.type" in ran.err
    for name in ("publish", "test", "retire", "pull"):
        ran = await call("mapping", name, "nothing_v1")
        assert (ran.code, ran.err.strip()) == (1, "There is no such mapping.")


SHEETS = {
    "format": 1,
    "name": "sheets_v1",
    "title": "Sheets",
    "fields": {"number": {"label": "Invoice"}},
    "xml": {"root": {"name": "I", "value": "number"}},
}


async def test_samples_are_all_documents_beside_a_mapping(call: Call, tmp_path: Path) -> None:
    made = tmp_path / "sheets_v1"
    (made / "samples").mkdir(parents=True)
    (made / "mapping.json").write_text(json.dumps(SHEETS))
    samples = {
        "june.csv": b"Invoice;4711\n",
        "may.XLSX": packed(workbook_parts({"May": sheet([["Invoice", 4712]])})),
        "~$may.xlsx": b"Excel's lock",
        ".hidden.csv": b"a;b",
        "notes.txt": b"not a sample",
    }
    for name, content in samples.items():
        (made / "samples" / name).write_bytes(content)
    (made / "samples/june.json").write_text(json.dumps({"number": "4711"}))
    (made / "samples/may.json").write_text(json.dumps({"number": "4711"}))
    (made / "samples/old.pdf").mkdir()
    pushed = await call("mapping", "push", made)
    assert pushed.out.startswith("sheets_v1 is a draft with 2 samples."), (pushed.out, pushed.err)
    ran = await call("mapping", "test", "sheets_v1")
    assert (ran.code, ran.lines) == (1, ["✓ june", "✗ may", "    number: '4712' instead of '4711'"])

    (made / "samples/june.pdf").write_bytes(b"%PDF-")
    refused = await call("mapping", "push", made)
    assert (refused.code, "june.csv and june.pdf" in refused.err) == (2, True), "june.json would be for both"


async def test_a_sample_that_the_mapping_can_never_read_is_refused_with_its_name(call: Call, tmp_path: Path) -> None:
    made = tmp_path / "sheets_v1"
    (made / "samples").mkdir(parents=True)
    (made / "mapping.json").write_text(json.dumps(SHEETS))
    (made / "samples/one.xml").write_bytes(b"<?xml version='1.0'?><Invoice/>")
    ran = await call("mapping", "push", made)
    assert ran.code == 1
    assert ran.err.startswith("one.xml: This is XML, and the mapping 'sheets_v1' reads PDFs.")

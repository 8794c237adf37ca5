"""A folder goes in through `waybill batch submit`, and what was read comes out, through all real services."""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

from endtoend.conftest import MakeStack
from support.command_line import EXECUTABLE
from support.invoices import print_invoice, reference_invoice
from support.stack import Stack
from support.workbooks import packed, sheet, workbook_parts
from waybill.security import keys

pytestmark = pytest.mark.timeout(240)


async def key_of(stack: Stack, tenant: str) -> str:
    async def create(connection: Any) -> str:
        permissions = ("batches:read", "batches:write", "convert:read", "convert:write")
        return (await keys.create(connection, tenant=tenant, name="test", permissions=permissions)).text

    return str(await stack.run(create))


async def batch(stack: Stack, key: str, *arguments: str) -> tuple[int, str, str]:
    environment = {**os.environ, "WAYBILL_API_KEY": key, "WAYBILL_API_URL": stack.url}
    process = await asyncio.create_subprocess_exec(
        str(EXECUTABLE),
        "batch",
        *arguments,
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


def documents(folder: Path) -> None:
    """Six files: four are good, two of them alike; one is damaged; one is a picture."""
    for name in ("invoices", "notes/deep", "sheets"):
        (folder / name).mkdir(parents=True)
    (folder / "invoices" / "august.pdf").write_bytes(print_invoice(*reference_invoice(4)))
    (folder / "notes" / "one.txt").write_text("First line\nSecond line\n")
    (folder / "notes" / "deep" / "copy.txt").write_text("First line\nSecond line\n")
    (folder / "sheets" / "list.xlsx").write_bytes(
        packed(workbook_parts({"Prices": sheet([["Item", "Price"], ["Nut", 1.5]])}))
    )
    (folder / "sheets" / "broken.xlsx").write_bytes(packed(workbook_parts({"Broken": sheet([["a"]])}))[:-200])
    (folder / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    (folder / ".hidden").write_text("left out")


async def test_a_folder_becomes_json_xml_and_one_summary(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = await make_stack("api", "gateway", "worker")
    key = await key_of(stack, "acme")
    documents(folder := tmp_path / "papers")
    out = tmp_path / "results"

    code, said, err = await batch(stack, key, "submit", str(folder), "-r", "*.pdf=pt_simon_invoice_v1", "-o", str(out))
    assert code == 5, (said, err)  # some files failed
    assert "6 files: 4 complete, 2 failed" in said
    assert "photo.png: This is a picture. Pictures are not read." in said

    written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert written == {
        "invoices/august.pdf.json",
        "invoices/august.pdf.xml",
        "notes/one.txt.json",
        "notes/deep/copy.txt.json",
        "sheets/list.xlsx.json",
        "SUMMARY.json",
        "ERRORS.csv",
    }
    assert (out / "invoices/august.pdf.xml").read_text().startswith("<?xml")
    assert json.loads((out / "invoices/august.pdf.json").read_text())["data"]["lines"]
    assert "Second line" in (out / "notes/one.txt.json").read_text()
    assert (out / "notes/one.txt.json").read_bytes() == (out / "notes/deep/copy.txt.json").read_bytes()
    summary = json.loads((out / "SUMMARY.json").read_text())
    assert summary["counts"] == {"files": 6, "complete": 4, "failed": 2}
    assert {each["field"] for each in summary["totals"]} >= {"subtotal", "total"}
    assert [each["name"] for each in summary["folders"]["folders"]] == ["invoices", "notes", "sheets"]

    # The same folder again is the same batch; as a ZIP file, its results come as one.
    code, said, err = await batch(stack, key, "submit", str(folder), "-r", "*.pdf=pt_simon_invoice_v1", "--json")
    again = json.loads(said)
    assert code == 0
    assert again["deduped_from"] == again["batch"]["id"]
    code, _, err = await batch(stack, key, "download", again["batch"]["id"], "-o", str(tmp_path / "all.zip"))
    assert code == 0, err
    assert set(zipfile.ZipFile(tmp_path / "all.zip").namelist()) == written

    # Nobody else sees it.
    other = await key_of(stack, "other")
    code, _, err = await batch(stack, other, "show", again["batch"]["id"])
    assert (code, err.strip()) == (1, "There is no such batch.")
    code, said, _ = await batch(stack, other, "ls", "--json")
    assert json.loads(said)["batches"] == []

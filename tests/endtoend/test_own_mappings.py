"""A tenant's own mapping, from the first push to a correction: each job keeps the very version that it named."""

from __future__ import annotations

import hashlib
import json
from html import unescape
from typing import Any

import httpx
import pytest

from endtoend.conftest import MakeStack
from support.command_line import Waybill, process
from support.invoices import print_invoice, reference_invoice
from support.patience import eventually
from support.sheets import Rows
from support.stack import Stack
from support.workbooks import packed, sheet, workbook_parts
from waybill.security import keys
from waybill_documents.catalogue import folder
from waybill_engine import erasure

__all__ = ["process"]

pytestmark = pytest.mark.timeout(240)

SHIPPED = json.loads((folder() / "pt_simon_invoice_v1" / "mapping.json").read_bytes())
CORETAX = {"coretax.xsd": (folder() / "pt_simon_invoice_v1" / "coretax.xsd").read_text()}
QUICK_BREAKER = {"WAYBILL_BREAKER_OPEN": "1", "WAYBILL_BREAKER_OPEN_MAX": "2"}
PERMISSIONS = ("convert:read", "convert:write", "mappings:read", "mappings:write")


async def client_of(stack: Stack, tenant: str) -> httpx.AsyncClient:
    async def create(connection: Any) -> str:
        return (await keys.create(connection, tenant=tenant, name="test", permissions=PERMISSIONS)).text

    key = await stack.run(create)
    headers = {"Authorization": f"Bearer {key}"}
    return httpx.AsyncClient(base_url=stack.url, headers=headers, timeout=60, trust_env=False)


async def publish(client: httpx.AsyncClient, name: str, title: str) -> str:
    return await publish_document(client, name, {**SHIPPED, "name": name, "title": title}, CORETAX)


async def push_document(
    client: httpx.AsyncClient, name: str, document: dict[str, Any], schemas: dict[str, str] | None = None
) -> str:
    body = {"document": json.dumps(document), "schemas": schemas or {}}
    made = await client.put(f"/api/mappings/{name}", json=body)
    assert made.status_code == 200, made.text
    return str(made.json()["sha256"])


async def publish_document(
    client: httpx.AsyncClient, name: str, document: dict[str, Any], schemas: dict[str, str] | None = None
) -> str:
    sha256 = await push_document(client, name, document, schemas)
    published = await client.post(f"/api/mappings/{name}/publish")
    assert published.status_code == 200, published.text
    return sha256


async def upload(
    client: httpx.AsyncClient, mapping: str, name: str = "invoice.pdf", content: bytes | None = None
) -> str:
    files = {"file": (name, content or print_invoice(*reference_invoice(4)), "application/octet-stream")}
    answer = await client.post("/api/upload", files=files, data={"mapping": mapping})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["job"]["id"])


async def completed(client: httpx.AsyncClient, job: str) -> dict[str, Any]:
    """The record of revision 0, once there is one."""

    async def over() -> bool:
        found = (await client.get(f"/api/jobs/{job}")).json()
        assert found["status"] != "failed", found["error"]
        return bool(found["status"] == "complete")

    await eventually(over, within=90, every=0.1, what=f"job {job} is complete")
    record: dict[str, Any] = (await client.get(f"/api/jobs/{job}/provenance")).json()
    return record


async def test_every_run_and_every_correction_uses_the_version_that_the_job_named(make_stack: MakeStack) -> None:
    stack = await make_stack("api", "gateway", **QUICK_BREAKER)
    async with await client_of(stack, "acme") as acme, await client_of(stack, "other") as other:
        first = await publish(acme, "acme_v1", "First")
        theirs = await publish(other, "acme_v1", "Theirs")
        stack.stop("gateway")
        stack.start("worker")
        job, foreign = await upload(acme, "acme_v1"), await upload(other, "acme_v1")
        tried_once = "SELECT id FROM jobs WHERE id = ANY ($1::uuid[]) AND lease_token > 0 AND state <> 'running'"

        async def tried() -> bool:
            return len(await stack.sql(tried_once, [job, foreign])) == 2

        await eventually(tried, within=60, every=0.1, what="both were tried without a gateway")
        # What the name means changes in every way that it can.
        assert (await acme.post("/api/mappings/acme_v1/retire")).status_code == 200
        second = await publish_without_gateway(stack, acme, "acme_v2", "Second")
        record = await completed(acme, job)
        assert record["mapping"] == {"name": "acme_v1", "title": "First", "sha256": first}
        assert (await completed(other, foreign))["mapping"]["sha256"] == theirs

        saved = await acme.post(
            f"/api/jobs/{job}/revisions", json={"base": 0, "changes": [{"path": "buyer_name", "value": "PT Baru"}]}
        )
        assert saved.status_code == 201, saved.text
        revised = (await acme.get(f"/api/jobs/{job}/revisions/1")).json()
        assert (revised["mapping"]["sha256"], revised["data"]["buyer_name"]) == (first, "PT Baru")
        page = await acme.get(f"/review/{job}")
        assert page.status_code == 200

        later = await upload(acme, "acme_v2")
        assert (await completed(acme, later))["mapping"]["sha256"] == second
        pinned = await stack.sql("SELECT job_id::text, mapping_sha256 FROM conversions")
        assert dict(pinned) == {job: first, foreign: theirs, later: second}


async def publish_without_gateway(stack: Stack, client: httpx.AsyncClient, name: str, title: str) -> str:
    """Publish while there is no gateway, and then start one, which has never seen the first version."""
    sha256 = await publish(client, name, title)
    await stack.start_all("gateway")
    return sha256


INVOICES = {"format": 1, "name": "invoices_v1", "title": "Invoices", "embedded": {"output": "ubl"}}
SHEETS = {
    "format": 1,
    "name": "sheet_v1",
    "title": "Sheet",
    "locale": {"base": "de"},
    "fields": {"number": {"label": "Rechnung"}},
    "tables": {
        "lines": {
            "columns": {"name": {"header": "Artikel"}, "amount": {"header": "Betrag", "type": "decimal"}},
            "row": {"begins": "amount"},
        }
    },
    "xml": {
        "root": {
            "name": "I",
            "attributes": {"n": "number"},
            "children": [{"name": "L", "each": "lines", "value": "amount"}],
        }
    },
}


async def test_workbooks_and_csv_files_are_converted_shown_and_corrected(make_stack: MakeStack) -> None:
    stack = await make_stack("api", "gateway", "worker")
    rows: Rows = [["Rechnung", 4711], ["Artikel", "Betrag"], ["Rohr", 37.05], ["Mutter", "1.234,50"]]
    book = packed(workbook_parts({"Blatt 1": sheet(rows), "Notiz": sheet([["nichts"]])}))
    text = b"Rechnung;4711\r\nArtikel;Betrag\r\nRohr;37,05\r\nMutter;1.234,50\r\n"
    async with await client_of(stack, "acme") as acme:
        await publish_document(acme, "sheet_v1", SHEETS)
        for name, content, sheets, cell in (("Mai.xlsx", book, 2, "'Blatt 1'!B4"), ("Mai.csv", text, 1, "B4")):
            job = await upload(acme, "sheet_v1", name, content)
            record = await completed(acme, job)
            assert record["provenance"]["tables"]["lines"][1]["amount"]["cell"] == cell
            (row,) = await stack.sql("SELECT pages FROM conversions WHERE job_id = $1::text::uuid", job)
            assert row["pages"] == sheets

            result = await acme.get(f"/api/jobs/{job}/download")
            assert f'"Mai-{job}.xml"' in result.headers["content-disposition"]
            assert result.text.endswith('<I n="4711">\n  <L>37.05</L>\n  <L>1234.50</L>\n</I>\n'), result.text
            page = (await acme.get(f"/review/{job}")).text
            assert "A workbook has no page image." in page
            assert cell in unescape(page)
            assert (await acme.get(f"/api/jobs/{job}/pages/1")).status_code == 422

            changes = [{"path": "lines[0].amount", "value": "38,00"}]
            saved = await acme.post(f"/api/jobs/{job}/revisions", json={"base": 0, "changes": changes})
            assert saved.status_code == 201, saved.text
            assert "<L>38.00</L>" in (await acme.get(f"/api/jobs/{job}/download")).text


async def test_what_may_be_lost_of_an_e_invoice_is_chosen_with_its_upload_or_its_retry(make_stack: MakeStack) -> None:
    stack = await make_stack("api", "gateway", "worker")
    mail = b"<ram:EmailURIUniversalCommunication>"
    number = b"<ram:CompleteNumber>+49 40 1</ram:CompleteNumber>"
    fax = b"<ram:FaxUniversalCommunication>" + number + b"</ram:FaxUniversalCommunication>"
    invoice = (folder() / "en16931_ubl" / "golden" / "invoice.cii.xml").read_bytes().replace(mail, fax + mail, 1)
    files = {"file": ("invoice.xml", invoice, "application/xml")}
    async with await client_of(stack, "acme") as acme:
        jobs = {}
        for loss in ("", "lenient"):
            answer = await acme.post("/api/upload", files=files, data={"mapping": "auto", "loss": loss})
            assert answer.status_code == 201, answer.text
            jobs[loss] = str(answer.json()["job"]["id"])
        await acme.post("/api/upload", files=files, data={"mapping": "en16931_ubl"})
        named = (await acme.post("/api/upload", files=files, data={"mapping": "en16931_ubl"})).json()["job"]["id"]

        async def failed() -> bool:
            return bool((await acme.get(f"/api/jobs/{named}")).json()["status"] == "failed")

        await eventually(failed, within=90, every=0.1, what="the strict conversion is refused")
        assert "dropped" in await completed(acme, jobs["lenient"])
        retried = (await acme.post(f"/api/jobs/{named}/retry", params={"loss": "lenient"})).json()
        assert (retried["mapping"], retried["loss"]) == ("en16931_ubl", "lenient")
        record = await completed(acme, named)
        assert [finding["params"]["value"] for finding in record["dropped"]] == ["+49 40 1"]
        assert (await acme.get(f"/api/jobs/{named}")).json()["loss"] == "lenient"


SECRET = "Zimtstern"
"""In the name of each sample, in what is expected of it, and in what can be read of the texts."""


async def add_samples(client: httpx.AsyncClient, tenant: str) -> None:
    """A draft, a published and a retired mapping, with a sample of each kind."""
    await push_document(client, "draft_v1", {**SHEETS, "name": "draft_v1"})
    await push_document(client, "old_v1", {**SHIPPED, "name": "old_v1"}, CORETAX)
    await push_document(client, "invoices_v1", INVOICES)
    rows: Rows = [["Rechnung", SECRET], ["Artikel", "Betrag"], ["Rohr", 1], [tenant, 2]]
    text = "\r\n".join(";".join(map(str, row)) for row in rows)
    invoice = (folder() / "en16931_ubl" / "golden" / "invoice.cii.xml").read_bytes()
    start = b"<rsm:CrossIndustryInvoice"
    for mapping, ending, content in (
        ("draft_v1", ".csv", text.encode()),
        ("draft_v1", "-book.xlsx", packed(workbook_parts({"Blatt 1": sheet(rows)}))),
        ("old_v1", ".pdf", print_invoice(*reference_invoice(3)) + f"% {tenant}".encode()),
        ("invoices_v1", ".xml", invoice.replace(start, f"<!-- {SECRET} {tenant} -->".encode() + start, 1)),
    ):
        expected = json.dumps({"number": f"{SECRET}-{tenant}"})
        added = await client.post(
            f"/api/mappings/{mapping}/samples",
            files={"file": (f"{SECRET}-{tenant}{ending}", content, "")},
            data={"expected": expected} if mapping == "draft_v1" else {},
        )
        assert added.status_code == 201, added.text
    for name in ("old_v1", "invoices_v1"):
        assert (await client.post(f"/api/mappings/{name}/publish")).status_code == 200
    assert (await client.post("/api/mappings/old_v1/retire")).status_code == 200
    assert (await client.post("/api/mappings/draft_v1/test")).json()["passed"] is False


async def kept_of_samples(stack: Stack, tenant: str, samples: list[Any]) -> list[str]:
    """Everything in the database and in the storage that tells of a tenant's samples."""
    found = []
    of_rows = [row[column] for row in samples for column in ("id", "storage_key", "sha256")]
    needles = [f"{SECRET}-{tenant}", *of_rows]
    tables = await stack.sql("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    for (table,) in tables:
        # The audit trail says for ever that there was a sample, by its id: when, of which mapping, and who added it.
        here = needles[:1] if table == "audit_events" else needles
        rows = await stack.sql(f'SELECT row::text FROM "{table}" AS row')
        found += [f"{table}: {needle}" for (row,) in rows for needle in here if needle in row]
    for path in stack.home.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        marked = f"{SECRET} {tenant}".encode() in content or hashlib.sha256(content).hexdigest() in needles
        if marked or any(needle in str(path) for needle in needles):
            found.append(str(path))
    return found


async def test_nothing_of_an_erased_tenants_samples_stays(make_stack: MakeStack, process: Waybill) -> None:
    """One tenant is erased by the command, and one by the janitor, which goes on with what was begun."""
    stack = await make_stack("api", "gateway")
    by_whom = ("command", "janitor", "nobody")
    for tenant in by_whom:
        async with await client_of(stack, tenant) as client:
            await add_samples(client, tenant)
    samples = await stack.sql("SELECT tenant, id::text, storage_key, sha256 FROM mapping_samples")
    of = {tenant: [row for row in samples if row["tenant"] == tenant] for tenant in by_whom}
    before = {tenant: await kept_of_samples(stack, tenant, of[tenant]) for tenant in by_whom}
    for found in before.values():
        assert len(of["command"]) == 4
        assert sum("/samples/" in each and each.startswith("/") for each in found) == 4, found
        assert any(each.startswith("mapping_samples: ") for each in found)

    ran = await process("tenant", "erase", "command", "--yes", **stack.settings)
    assert ran.code == 0, ran.err
    assert await kept_of_samples(stack, "command", of["command"]) == []

    await stack.run(lambda connection: erasure.request(connection, "janitor"))
    ran = await process("janitor", "run", **stack.settings)
    assert ran.code == 0, ran.out + ran.err
    for tenant in ("command", "janitor"):
        assert await kept_of_samples(stack, tenant, of[tenant]) == []
        assert await stack.sql("SELECT FROM mappings WHERE tenant = $1", tenant) == []
    assert await kept_of_samples(stack, "nobody", of["nobody"]) == before["nobody"]

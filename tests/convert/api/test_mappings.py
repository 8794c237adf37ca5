"""A tenant's own mappings: draft, samples, test, publish, retire; and nobody sees or changes another's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from support.api_fixtures import Serve
from support.api_server import Api, upload
from support.gateway import Gateway
from support.invoices import print_invoice, reference_invoice
from support.sheets import Rows
from support.workbooks import packed, sheet, workbook_parts
from waybill.db import Database
from waybill.errors import Conflict
from waybill.files import FileType
from waybill.pipelines import brought
from waybill.security import ADMIN
from waybill_convert.sample_form import SampleForm
from waybill_convert.sample_service import MOST_SAMPLES
from waybill_convert.web_context import ConvertContext
from waybill_documents.catalogue import folder
from waybill_engine import erasure

SECRET = "s" * 40
SHIPPED = json.loads((folder() / "pt_simon_invoice_v1" / "mapping.json").read_bytes())
CORETAX = {"coretax.xsd": (folder() / "pt_simon_invoice_v1" / "coretax.xsd").read_text()}
MAPPING_KEY = ("convert:read", "convert:write", "mappings:read", "mappings:write")
EMBEDDED = {"format": 1, "name": "acme", "title": "Acme", "embedded": {"output": "ubl"}}
SAMPLE = print_invoice(*reference_invoice(3))


E_INVOICE = {"format": 1, "name": "acme", "title": "Acme", "embedded": {"output": "ubl"}}


def pushed(name: str = "acme_v1", **changed: Any) -> dict[str, Any]:
    return {"document": json.dumps({**SHIPPED, "name": name, "title": "Acme", **changed}), "schemas": CORETAX}


@pytest.fixture(scope="module")
def trusted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("trusted"), gateway_secret=SECRET, gateway_open="false")
    yield gateway
    gateway.close()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Where the API stores documents; the module has another `folder`."""
    return tmp_path / "storage"


@dataclass
class Tenants:
    api: Api
    acme: httpx.AsyncClient
    other: httpx.AsyncClient
    admin: httpx.AsyncClient


@pytest.fixture
async def tenants(serve: Serve, trusted: Gateway) -> AsyncIterator[Tenants]:
    async with serve(gateway_url=trusted.url, gateway_secret=SECRET) as api:
        yield Tenants(
            api,
            api.client(await api.key("acme", *MAPPING_KEY)),
            api.client(await api.key("other", *MAPPING_KEY)),
            api.client(await api.key("boss", ADMIN)),
        )


async def push(
    client: httpx.AsyncClient, name: str = "acme_v1", *, params: Any = None, **changed: Any
) -> httpx.Response:
    return await client.put(f"/api/mappings/{name}", json=pushed(name, **changed), params=params)


async def published(client: httpx.AsyncClient, name: str = "acme_v1", **changed: Any) -> dict[str, Any]:
    assert (await push(client, name, **changed)).status_code == 200
    answer = await client.post(f"/api/mappings/{name}/publish")
    assert answer.status_code == 200, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def add_sample(client: httpx.AsyncClient, expected: Any = None, name: str = "one") -> httpx.Response:
    fields = {"name": name, **({"expected": json.dumps(expected)} if expected is not None else {})}
    return await client.post("/api/mappings/acme_v1/samples", files={"file": ("one.pdf", SAMPLE)}, data=fields)


async def names(client: httpx.AsyncClient) -> set[str]:
    return set((await client.get("/api/mappings")).json()["mappings"])


async def test_a_draft_is_tested_with_its_samples_and_published_when_they_pass(tenants: Tenants) -> None:
    acme = tenants.acme
    created = await acme.post("/api/mappings", json=pushed())
    assert (created.status_code, created.headers["location"]) == (201, "/api/mappings/acme_v1")
    assert created.json()["state"] == "draft"
    assert "acme_v1" not in await names(acme), "a draft cannot be chosen"
    assert (await upload(acme, mapping="acme_v1")).json()["code"] == "BAD_MAPPING"

    assert (await add_sample(acme, {"number": "wrong"})).status_code == 201
    tested = (await acme.post("/api/mappings/acme_v1/test")).json()
    assert tested["passed"] is False
    differences = {each["path"]: each for each in tested["samples"][0]["differences"]}
    number = differences["number"]["found"]
    assert differences["number"]["expected"] == "wrong"
    assert differences["lines"]["expected"] is None
    refused = await acme.post("/api/mappings/acme_v1/publish")
    assert (refused.status_code, refused.json()["samples"][0]["passed"]) == (409, False)
    assert refused.json()["key"] == "convert.mapping.samples_fail"

    assert (await add_sample(acme)).status_code == 201, "it takes the place of the one with the same name"
    answer = (await acme.post("/api/mappings/acme_v1/publish")).json()
    assert (answer["state"], [each["passed"] for each in answer["tested"]]) == ("published", [True])
    assert number
    assert "acme_v1" in await names(acme)
    assert '<option value="acme_v1"' in (await acme.get("/")).text
    job = (await upload(acme, mapping="acme_v1")).json()["job"]
    assert job["mapping"] == "acme_v1"


async def test_what_is_published_never_changes(tenants: Tenants, db: Database) -> None:
    acme = tenants.acme
    made = await published(acme)
    assert made["tested"] == [], "nothing was tried, and the answer says so"
    for answer in (
        await push(acme, title="Other"),
        await acme.delete("/api/mappings/acme_v1"),
        await acme.post("/api/mappings", json=pushed()),
        await acme.post("/api/mappings/acme_v1/publish"),
    ):
        assert answer.status_code == 409, answer.text
    async with db.hot() as connection:
        for statement in (
            "UPDATE mappings SET document = '{}'",
            "UPDATE mappings SET schemas = '{}'",
            "UPDATE mappings SET sha256 = 'x'",
            "UPDATE mappings SET name = 'acme_v2'",
            "UPDATE mappings SET tenant = 'other'",
            "UPDATE mappings SET state = 'draft'",
            "DELETE FROM mappings",
        ):
            with pytest.raises(asyncpg.RaiseError, match="is published and cannot be"):
                await connection.execute(statement)
    assert (await acme.get("/api/mappings/acme_v1")).json()["sha256"] == made["sha256"]


async def test_a_retired_mapping_cannot_be_chosen_any_more(tenants: Tenants) -> None:
    acme = tenants.acme
    await published(acme)
    for _ in range(2):
        assert (await acme.post("/api/mappings/acme_v1/retire")).json()["state"] == "retired"
    assert "acme_v1" not in await names(acme)
    assert (await upload(acme, mapping="acme_v1")).json()["code"] == "BAD_MAPPING"
    assert (await acme.post("/api/mappings/acme_v1/publish")).status_code == 409


async def test_two_tenants_with_the_same_name_see_only_their_own(tenants: Tenants) -> None:
    mine, theirs = await published(tenants.acme, title="Mine"), await published(tenants.other, title="Theirs")
    assert mine["sha256"] != theirs["sha256"]
    for client, title in ((tenants.acme, "Mine"), (tenants.other, "Theirs")):
        assert (await client.get("/api/mappings/acme_v1")).json()["title"] == title
        listed = (await client.get("/api/mappings")).json()
        assert [each["title"] for each in listed["own"]] == [title]
        assert [each["sha256"] for each in listed["choices"] if each["name"] == "acme_v1"] == [
            {"Mine": mine, "Theirs": theirs}[title]["sha256"]
        ]


async def test_a_foreign_mapping_looks_missing(tenants: Tenants) -> None:
    await published(tenants.acme)
    sample = (await add_sample(tenants.acme)).json()["id"]
    reader = tenants.api.client(await tenants.api.key("acme", "mappings:read"))
    browser = await tenants.api.browser()
    for method, path in [
        ("GET", "/api/mappings/acme_v1"),
        ("DELETE", "/api/mappings/acme_v1"),
        ("DELETE", f"/api/mappings/acme_v1/samples/{sample}"),
        ("POST", "/api/mappings/acme_v1/test"),
        ("POST", "/api/mappings/acme_v1/publish"),
        ("POST", "/api/mappings/acme_v1/retire"),
    ]:
        for stranger in (tenants.other, tenants.admin):
            answer = await stranger.request(method, path)
            assert (answer.status_code, answer.json()["key"]) == (404, "convert.mapping.none"), (method, path)
        assert (await browser.request(method, path)).status_code == 403
        assert (await reader.request(method, path)).status_code == (200 if method == "GET" else 403)
    assert (await add_sample(tenants.other)).status_code == 404
    assert (await add_sample(reader)).status_code == 403
    assert "acme_v1" not in await names(browser)
    assert (await upload(tenants.other, mapping="acme_v1")).json()["code"] == "BAD_MAPPING"


async def test_an_operator_shares_mappings_with_all_tenants(tenants: Tenants) -> None:
    for_all = {"shared": "true"}
    assert (await push(tenants.acme, "all_v1", params=for_all)).status_code == 403
    assert (await push(tenants.admin, "all_v1", params=for_all)).json()["shared"] is True
    assert (await tenants.acme.get("/api/mappings/all_v1")).status_code == 404, "a draft is the operator's own"
    assert (await tenants.admin.post("/api/mappings/all_v1/publish", params=for_all)).status_code == 200
    assert (await tenants.acme.get("/api/mappings/all_v1")).json()["shared"] is True
    for client in (tenants.acme, tenants.other, await tenants.api.browser()):
        assert "all_v1" in await names(client)
        assert (await upload(client, mapping="all_v1")).status_code == 201
    assert (await tenants.acme.post("/api/mappings/all_v1/retire")).status_code == 404


@pytest.mark.parametrize("name", ["pt_simon_invoice_v1", "oyo_v1", "shared_v1"])
async def test_a_tenant_takes_no_name_that_all_tenants_can_use(tenants: Tenants, name: str) -> None:
    assert (await push(tenants.admin, "shared_v1", params={"shared": "true"})).status_code == 200
    refused = await push(tenants.acme, name)
    assert (refused.status_code, refused.json()["key"]) == (409, "convert.mapping.name_taken")
    await push(tenants.acme, "mine_v1")
    taken = await push(tenants.admin, "mine_v1", params={"shared": "true"})
    assert taken.json()["key"] == "convert.mapping.name_taken"


@pytest.mark.parametrize(
    ("body", "status", "key"),
    [
        ({"document": "{}"}, 400, "convert.mapping.invalid"),
        ({"document": "[" * 100_000}, 400, "convert.mapping.invalid"),
        ({**pushed(), "schemas": {}}, 400, "convert.mapping.invalid"),
        ({**pushed(), "schemas": {"coretax.xsd": "x"}}, 400, "convert.mapping.invalid"),
        (pushed("acme"), 400, "convert.mapping.invalid"),
        (pushed("acme_v0"), 400, "convert.mapping.invalid"),
        (pushed("acme_v10000"), 422, "convert.mapping.unversioned"),
        ({"document": json.dumps(EMBEDDED)}, 422, "convert.mapping.unversioned"),
        (pushed("acme_v2"), 422, "convert.mapping.other_name"),
        ({**pushed(), "schemas": {**CORETAX, "../x.xsd": "x"}}, 422, "request.invalid"),
        ({**pushed(), "schemas": {**CORETAX, "mapping.json": "x"}}, 422, "request.invalid"),
        ({**pushed(), "schemas": {"x.xsd": "x" * 1_050_000}}, 422, "convert.mapping.too_large"),
        ({"document": '"\\u0000" \x00'}, 422, "convert.review.bad_characters"),
    ],
)
async def test_what_is_no_mapping_is_refused(tenants: Tenants, body: Any, status: int, key: str) -> None:
    answer = await tenants.acme.put("/api/mappings/acme_v1", json=body)
    assert (answer.status_code, answer.json()["key"]) == (status, key), answer.text
    assert (await tenants.acme.get("/api/mappings")).json()["own"] == []


async def test_a_schema_that_takes_minutes_to_compile_is_refused(tenants: Tenants) -> None:
    many = "".join(f'<xs:element name="e{each}" minOccurs="0" maxOccurs="3000"/>' for each in range(3000))
    bomb = (
        '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="A"><xs:complexType>'
        f'<xs:choice minOccurs="0" maxOccurs="3000">{many}</xs:choice></xs:complexType></xs:element></xs:schema>'
    )
    refused = await tenants.acme.put("/api/mappings/acme_v1", json={**pushed(), "schemas": {"coretax.xsd": bomb}})
    assert (refused.status_code, refused.json()["key"]) == (422, "convert.mapping.too_complicated")


@pytest.mark.parametrize("value", ["1e999", "NaN", "-Infinity", "[" * 500 + "]" * 500, r'"a\ud800"'])
async def test_expected_data_is_what_can_be_stored_and_compared(tenants: Tenants, value: str) -> None:
    await push(tenants.acme)
    fields = {"expected": f'{{"number": {value}}}'}
    answer = await tenants.acme.post("/api/mappings/acme_v1/samples", files={"file": ("a.pdf", SAMPLE)}, data=fields)
    assert (answer.status_code, answer.json()["key"]) == (400, "convert.mapping.expected")


BOOK_ROWS: Rows = [["Rechnung", 4711], ["Artikel", "Betrag"], ["Rohr", 37.05], ["Mutter", 1234.56]]
SHEET_SAMPLES = {
    "may.xlsx": packed(workbook_parts({"Blatt 1": sheet(BOOK_ROWS)})),
    "june.csv": b"Rechnung;4711\r\nArtikel;Betrag\r\nRohr;37,05\r\nMutter;1.234,56\r\n",
}
READS_SHEETS = {
    "locale": {"base": "de"},
    "fields": {"number": {"label": "Rechnung"}},
    "tables": {
        "lines": {
            "columns": {"name": {"header": "Artikel"}, "amount": {"header": "Betrag", "type": "decimal"}},
            "row": {"begins": "amount"},
        }
    },
    "xml": {"root": {"name": "I", "children": [{"name": "L", "each": "lines", "value": "amount"}]}},
}
READ = {"number": "4711", "lines": [{"name": "Rohr", "amount": "37.05"}, {"name": "Mutter", "amount": "1234.56"}]}
E_INVOICE_XML = (folder() / "en16931_ubl" / "golden" / "invoice.cii.xml").read_bytes()


async def push_own(client: httpx.AsyncClient, name: str, **rules: Any) -> None:
    document = json.dumps({"format": 1, "name": name, "title": "Own", **rules})
    assert (await client.put(f"/api/mappings/{name}", json={"document": document})).status_code == 200


async def add_document(client: httpx.AsyncClient, mapping: str, file: str, content: bytes, expected: Any = None) -> Any:
    fields = {"expected": json.dumps(expected)} if expected is not None else {}
    return await client.post(f"/api/mappings/{mapping}/samples", files={"file": (file, content, "")}, data=fields)


async def test_samples_are_whatever_the_mapping_reads(tenants: Tenants) -> None:
    acme = tenants.acme
    await push_own(acme, "sheets_v1", **READS_SHEETS)
    for file, content in SHEET_SAMPLES.items():
        added = await add_document(acme, "sheets_v1", file, content, READ)
        assert (added.status_code, added.json()["name"]) == (201, file.partition(".")[0]), added.text
    tested = (await acme.post("/api/mappings/sheets_v1/test")).json()
    assert tested["passed"], tested
    wrong = {**READ, "lines": [READ["lines"][0], {"name": "Mutter", "amount": "1234.57"}]}
    await add_document(acme, "sheets_v1", "june.csv", SHEET_SAMPLES["june.csv"], wrong)
    refused = await acme.post("/api/mappings/sheets_v1/publish")
    (failed,) = [each for each in refused.json()["samples"] if not each["passed"]]
    assert failed["differences"] == [{"path": "lines[1].amount", "expected": "1234.57", "found": "1234.56"}]
    await add_document(acme, "sheets_v1", "june.csv", SHEET_SAMPLES["june.csv"], READ)
    assert len((await acme.post("/api/mappings/sheets_v1/publish")).json()["tested"]) == 2

    await push_own(acme, "invoices_v1", embedded={"output": "ubl"})
    added = await add_document(acme, "invoices_v1", "one.xml", E_INVOICE_XML, {"number": "471102"})
    assert added.status_code == 201, added.text
    assert (await acme.post("/api/mappings/invoices_v1/test")).json()["samples"][0]["differences"]
    await add_document(acme, "invoices_v1", "one.xml", E_INVOICE_XML)
    assert (await acme.post("/api/mappings/invoices_v1/publish")).json()["state"] == "published"


async def test_a_sample_that_the_mapping_can_never_read_is_refused(tenants: Tenants, store: Path, db: Database) -> None:
    acme = tenants.acme
    await push_own(acme, "sheets_v1", **READS_SHEETS)
    await push_own(acme, "invoices_v1", embedded={"output": "ubl"})
    for mapping, file, content, key in (
        ("sheets_v1", "one.xml", E_INVOICE_XML, "xml_needs_mapping"),
        ("invoices_v1", "may.xlsx", SHEET_SAMPLES["may.xlsx"], "sheet_needs_mapping"),
        ("invoices_v1", "june.csv", SHEET_SAMPLES["june.csv"], "sheet_needs_mapping"),
        ("sheets_v1", "june.txt", SHEET_SAMPLES["june.csv"], "not_called_pdf"),
        ("sheets_v1", "may.csv", b"<html>;</html>", "no_sheet"),
    ):
        refused = await add_document(acme, mapping, file, content)
        assert (refused.status_code, refused.json()["key"]) == (415, f"convert.upload.{key}")
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT count(*) FROM mapping_samples") == 0
    assert not list(store.glob("samples/**/*.*"))


async def test_a_draft_that_reads_other_documents_now_fails_with_the_samples_it_had(tenants: Tenants) -> None:
    acme = tenants.acme
    await push_own(acme, "sheets_v1", **READS_SHEETS)
    await add_document(acme, "sheets_v1", "june.csv", SHEET_SAMPLES["june.csv"])
    await push_own(acme, "sheets_v1", embedded={"output": "ubl"})
    (sample,) = (await acme.post("/api/mappings/sheets_v1/test")).json()["samples"]
    assert (sample["passed"], "embedded" in sample["findings"][0]["message"]) == (False, True), sample


async def test_documents_that_an_own_mapping_can_never_read_are_refused_when_they_are_uploaded(
    tenants: Tenants,
) -> None:
    acme = tenants.acme
    for name, rules in (("sheets_v1", READS_SHEETS), ("invoices_v1", {"embedded": {"output": "ubl"}})):
        await push_own(acme, name, **rules)
        assert (await acme.post(f"/api/mappings/{name}/publish")).status_code == 200
    for mapping, file, content, key in (
        ("sheets_v1", "one.xml", E_INVOICE_XML, "xml_needs_mapping"),
        ("invoices_v1", "may.xlsx", SHEET_SAMPLES["may.xlsx"], "sheet_needs_mapping"),
        ("invoices_v1", "june.csv", SHEET_SAMPLES["june.csv"], "sheet_needs_mapping"),
        ("invoices_v1", "one.xml", E_INVOICE_XML, ""),
        ("sheets_v1", "may.xlsx", SHEET_SAMPLES["may.xlsx"], ""),
        ("sheets_v1", "june.csv", SHEET_SAMPLES["june.csv"], ""),
    ):
        answer = await acme.post("/api/upload", files={"file": (file, content, "")}, data={"mapping": mapping})
        found = answer.json().get("key", "")
        assert (answer.status_code, found) == ((415, f"convert.upload.{key}") if key else (201, "")), file
    lossy = await upload(acme, mapping="sheets_v1", loss="lenient")
    assert (lossy.status_code, lossy.json()["key"]) == (400, "convert.upload.loss_needs_e_invoices")
    assert (await upload(acme, mapping="invoices_v1", loss="lenient")).json()["job"]["loss"] == "lenient"


async def test_samples_are_bounded_and_go_with_their_draft(tenants: Tenants, db: Database) -> None:
    await push(tenants.acme)
    for number in range(MOST_SAMPLES):
        assert (await add_sample(tenants.acme, name=f"s{number}")).status_code == 201
    assert (await add_sample(tenants.acme, name="more")).json()["key"] == "convert.mapping.too_many_samples"
    for files, status in (({"file": ("a.pdf", b"no PDF")}, 415), ({"other": ("a.pdf", SAMPLE)}, 400)):
        assert (await tenants.acme.post("/api/mappings/acme_v1/samples", files=files)).status_code == status
    assert (await add_sample(tenants.acme, [1])).status_code == 400
    kept = (await tenants.acme.get("/api/mappings/acme_v1")).json()["documents"]
    assert len(kept) == MOST_SAMPLES
    assert (await tenants.acme.delete("/api/mappings/acme_v1")).status_code == 204
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT count(*) FROM mapping_samples") == 0
        garbage = await connection.fetchval("SELECT count(*) FROM garbage WHERE key LIKE 'samples/%'")
        assert garbage >= MOST_SAMPLES


async def test_a_sample_that_was_on_its_way_does_not_outlive_the_erasure_of_its_tenant(
    tenants: Tenants, db: Database, store: Path
) -> None:
    services = tenants.api.context.service(ConvertContext)
    await push(tenants.acme)
    begun_at = await services.mapping_samples.begin("acme")
    async with db.hot() as connection:
        request = await erasure.request(connection, "acme")
    with pytest.raises(Conflict, match="being erased"):
        await services.mapping_samples.begin("acme")
    done = await erasure.erase(db, services.storage, brought("erasure"), request, within=60)
    assert done.finished_at is not None
    # Somebody begins anew under that name, with a mapping of the same name.
    anew = tenants.api.client(await tenants.api.key("acme", *MAPPING_KEY))
    assert (await push(anew)).status_code == 200
    form = SampleForm("one", SAMPLE, FileType.PDF, None)
    with pytest.raises(Conflict, match="being erased"):
        await services.mapping_samples.add("acme", "acme_v1", form, begun_at=begun_at)
    assert not [path for path in store.glob("samples/**/*") if path.is_file()]
    assert (await add_sample(anew)).status_code == 201


async def test_each_change_is_in_the_audit_trail(tenants: Tenants, db: Database) -> None:
    await push(tenants.acme)
    await add_sample(tenants.acme)
    await tenants.acme.post("/api/mappings/acme_v1/publish")
    await tenants.acme.post("/api/mappings/acme_v1/retire")
    async with db.hot() as connection:
        rows = await connection.fetch("SELECT action, tenant FROM audit_events WHERE subject = 'mapping:acme_v1'")
    assert {(row["action"], row["tenant"]) for row in rows} == {
        (f"mapping.{done}", "acme") for done in ("pushed", "sample_added", "published", "retired")
    }

"""Mappings that come with a document: only from our services, exactly as hashed, and compiled in the sandbox."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from lxml import etree

from support.gateway import Gateway, assert_problem
from support.invoices import print_invoice, reference_invoice
from waybill.http.proofs import ask
from waybill_documents.catalogue import folder
from waybill_documents.faults import MappingFault
from waybill_documents.mapping_files import MappingFiles
from waybill_gateway.content_negotiation import CONVERSION, XML
from waybill_gateway.sent_mappings import MOST_SENT, CompiledMappings

SECRET = "s" * 40
SHIPPED = json.loads((folder() / "pt_simon_invoice_v1" / "mapping.json").read_bytes())
CORETAX = {"coretax.xsd": (folder() / "pt_simon_invoice_v1" / "coretax.xsd").read_text()}
NOTE = {
    "format": 1,
    "name": "note_v1",
    "title": "Note",
    "locale": {"base": "en"},
    "fields": {"number": {"label": "Number", "type": "text"}},
    "xml": {"root": {"name": "Note", "children": [{"name": "Number", "value": "number"}]}, "xsd": "note.xsd"},
}
XSD = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="number.xsd"/>
<xs:element name="Note"><xs:complexType><xs:sequence><xs:element name="Number" type="Number"/></xs:sequence>
</xs:complexType></xs:element></xs:schema>"""
NUMBER = """<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="Number">
<xs:restriction base="xs:string"><xs:pattern value="[0-9]+"/></xs:restriction></xs:simpleType></xs:schema>"""
SCHEMAS = {"note.xsd": XSD, "number.xsd": NUMBER}


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("trusting"), gateway_secret=SECRET)
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text
    assert gateway.spooled() == []


@pytest.fixture(scope="module")
def invoice() -> bytes:
    return print_invoice(*reference_invoice(3))


def entry(mapping: dict[str, Any], **changed: Any) -> dict[str, Any]:
    document = json.dumps(mapping)
    sha256 = hashlib.sha256(document.encode()).hexdigest()
    return {"name": mapping["name"], "sha256": sha256, "document": document, **changed}


def proven() -> dict[str, str]:
    return ask(SECRET.encode(), "POST", "/process")[1]


def send(gateway: Gateway, document: bytes, *sent: Any, mapping: str, accept: str = XML) -> httpx.Response:
    return gateway.send(document, accept=accept, headers=proven(), mapping=mapping, mappings=json.dumps(sent))


def test_a_document_is_converted_by_the_mapping_that_came_with_it(gateway: Gateway, invoice: bytes) -> None:
    sent = entry({**SHIPPED, "name": "acme_v1", "title": "Acme"}, schemas=CORETAX)
    made = send(gateway, invoice, sent, mapping="acme_v1", accept=CONVERSION).json()
    assert made["mapping"] == {"name": "acme_v1", "title": "Acme", "sha256": sent["sha256"]}
    assert len(made["data"]["lines"]) == 3
    assert "acme_v1" not in gateway.client.get("/mappings", headers=ask(SECRET.encode(), "GET", "/mappings")[1]).text
    later = gateway.send(invoice, accept=XML, headers=proven(), mapping="acme_v1")
    assert_problem(later, 400, "BAD_MAPPING")


def test_another_version_under_the_same_name_is_not_confused_with_it(gateway: Gateway, invoice: bytes) -> None:
    for title in ("First", "Second", "First"):
        sent = entry({**SHIPPED, "name": "acme_v1", "title": title}, schemas=CORETAX)
        made = send(gateway, invoice, sent, mapping="acme_v1.json", accept=CONVERSION).json()
        assert made["mapping"] == {"name": "acme_v1", "title": title, "sha256": sent["sha256"]}


def test_what_was_sent_comes_before_the_gateways_own_which_are_found_too(gateway: Gateway, invoice: bytes) -> None:
    own = send(gateway, invoice, entry(NOTE, schemas=SCHEMAS), mapping=SHIPPED["name"], accept=CONVERSION).json()
    sent = entry({**SHIPPED, "title": "Sent"}, schemas=CORETAX)
    theirs = send(gateway, invoice, sent, mapping=SHIPPED["name"], accept=CONVERSION).json()
    assert own["mapping"]["title"] == SHIPPED["title"]
    assert theirs["mapping"]["title"] == "Sent"


def test_auto_chooses_among_those_that_came_and_the_gateways_own(gateway: Gateway, invoice: bytes) -> None:
    preferred = {**SHIPPED["recognise"], "preference": 1}
    sent = entry({**SHIPPED, "name": "acme_v1", "title": "Acme", "recognise": preferred}, schemas=CORETAX)
    answer = send(gateway, invoice, sent, mapping="auto", accept=CONVERSION)
    made = answer.json()
    assert answer.headers["x-mapping"] == made["mapping"]["name"] == "acme_v1"
    assert made["mapping"]["sha256"] == sent["sha256"]
    assert made["recognition"]["runner_up"]["name"] == SHIPPED["name"]
    other = {"name": SHIPPED["name"], "sha256": "0" * 64}
    refused = send(gateway, invoice, sent, other, mapping="auto")
    assert assert_problem(refused, 400, "BAD_MAPPING")["key"] == "recognition.other_catalogue"


def test_its_schemas_travel_with_it(gateway: Gateway) -> None:
    sent = entry(NOTE, schemas=SCHEMAS)
    made = send(gateway, b'{"number": "12"}', sent, mapping="note_v1")
    assert etree.fromstring(made.content).findtext("Number") == "12"
    wrong = assert_problem(send(gateway, b'{"number": "A"}', sent, mapping="note_v1"), 422, "PARSE_ERROR")
    assert wrong["fault"] == "invalid_xml"


def test_the_same_document_with_another_schema_is_another_mapping(gateway: Gateway) -> None:
    loose = entry(NOTE, schemas={**SCHEMAS, "number.xsd": NUMBER.replace("[0-9]+", ".*")})
    assert send(gateway, b'{"number": "A"}', loose, mapping="note_v1").status_code == 200
    strict = entry(NOTE, schemas=SCHEMAS)
    assert send(gateway, b'{"number": "A"}', strict, mapping="note_v1").status_code == 422


@pytest.mark.parametrize(
    "schemas",
    [
        {},
        {"note.xsd": XSD},
        {**SCHEMAS, "note.xsd": XSD.replace("number.xsd", "http://127.0.0.1:1/number.xsd")},
        {**SCHEMAS, "note.xsd": XSD.replace("number.xsd", "/etc/passwd")},
        {**SCHEMAS, "note.xsd": "<!DOCTYPE x [<!ENTITY a 'b'>]>" + XSD},
        {**SCHEMAS, "note.xsd": "no schema"},
    ],
)
def test_a_schema_comes_from_nowhere_else(gateway: Gateway, schemas: dict[str, str]) -> None:
    answer = send(gateway, b'{"number": "1"}', entry(NOTE, schemas=schemas), mapping="note_v1")
    problem = assert_problem(answer, 400, "BAD_MAPPING")
    assert "note_v1" in problem["detail"]
    assert "root:" not in problem["detail"]


@pytest.mark.parametrize(
    ("sent", "key"),
    [
        ([entry(NOTE, sha256="0" * 64)], "mapping.sent_changed"),
        ([entry(NOTE, name="other_v1", schemas=SCHEMAS)], "mapping.sent_other_name"),
        (
            [entry({**NOTE, "fields": {"number": {"label": "N", "pattern": "("}}}, schemas=SCHEMAS)],
            "mapping.sent_wrong",
        ),
        ([{**entry(NOTE), "document": "{", "sha256": hashlib.sha256(b"{").hexdigest()}], "mapping.sent_wrong"),
        ([entry(NOTE)] * 2, "mapping.sent_twice"),
        ([entry(NOTE)] * (MOST_SENT + 1), "mapping.sent_too_many"),
        ({}, "mapping.sent_malformed"),
        ([7], "mapping.sent_malformed"),
        ([entry(NOTE, document=NOTE)], "mapping.sent_malformed"),
        ([entry(NOTE, document="\ud800")], "mapping.sent_malformed"),
        ([entry(NOTE, name="../etc")], "mapping.sent_malformed"),
        ([entry(NOTE, schemas={"../a.xsd": ""})], "mapping.sent_malformed"),
        ([entry(NOTE, schemas={"a.xsd": "\udfff"})], "mapping.sent_malformed"),
        ([entry(NOTE, schemas={"a.xsd": 1})], "mapping.sent_malformed"),
        ([], "mapping.unknown"),
    ],
)
def test_what_no_service_of_ours_would_send_is_a_bad_mapping(gateway: Gateway, sent: Any, key: str) -> None:
    named = sent[0]["name"] if isinstance(sent, list) and sent and isinstance(sent[0], dict) else "note_v1"
    wanted = named if "/" not in named else "note_v1"
    answer = gateway.send(b"{}", accept=XML, headers=proven(), mapping=wanted, mappings=json.dumps(sent))
    assert assert_problem(answer, 400, "BAD_MAPPING")["key"] == key


@pytest.mark.parametrize("sent", ["", "[", "[" * 100_000])
def test_what_is_not_json_is_a_bad_mapping(gateway: Gateway, sent: str) -> None:
    answer = gateway.send(b"{}", accept=XML, headers=proven(), mapping="note_v1", mappings=sent)
    assert assert_problem(answer, 400, "BAD_MAPPING")["key"] == "mapping.sent_malformed"


def test_only_a_caller_that_knows_the_secret_may_send_any(gateway: Gateway) -> None:
    answer = gateway.send(b"{}", accept=XML, mappings=json.dumps([entry(NOTE)]), mapping=SHIPPED["name"])
    assert_problem(answer, 403, "FORBIDDEN")


def test_they_may_be_large_but_not_larger_than_that(gateway: Gateway) -> None:
    documents = [entry({**NOTE, "name": f"note_{number}_v1"}, schemas={"a.xsd": "x" * 20_000}) for number in range(190)]
    answer = send(gateway, b"{}", *documents, mapping="note_v1")
    assert assert_problem(answer, 400, "BAD_MAPPING")["key"] == "mapping.unknown"
    answer = send(gateway, b"{}", *documents, "x" * 1_000_000, mapping="note_v1")
    assert assert_problem(answer, 400, "VALIDATION_ERROR")["key"] == "gateway.mappings_too_large"


def named(number: int) -> MappingFiles:
    return MappingFiles(json.dumps({**NOTE, "name": f"note_{number}_v1"}), SCHEMAS)


def test_a_mapping_is_compiled_once_while_it_is_in_use() -> None:
    compiled = CompiledMappings(most=2)
    first = compiled.get(named(1))
    compiled.get(named(2))
    assert compiled.get(named(1)) is first
    compiled.get(named(3))
    assert len(compiled) == 2
    assert compiled.get(named(1)) is first, "the longest unused one was forgotten"


def test_large_mappings_are_forgotten_sooner() -> None:
    compiled = CompiledMappings(most_bytes=2 * named(1).size)
    for number in range(1, 6):
        compiled.get(named(number))
    assert len(compiled) == 2


def test_a_mapping_that_is_wrong_is_not_remembered() -> None:
    compiled = CompiledMappings()
    with pytest.raises(MappingFault):
        compiled.get(MappingFiles("{}"))
    assert len(compiled) == 0

"""XML is validated by a schema, which can include only files beside it; findings name the line and the element."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from documents.xml_output.test_tree import mapping
from waybill_documents.faults import DocumentRejected, FaultCode, MappingFault
from waybill_documents.xml_output import load_schema, render

_XSD = b"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">
  <xs:element name="r"><xs:complexType><xs:sequence>
    <xs:element name="l" maxOccurs="unbounded"><xs:complexType><xs:sequence>
      <xs:element name="n" type="two"/><xs:element name="a" type="xs:decimal"/>
    </xs:sequence></xs:complexType></xs:element>
  </xs:sequence></xs:complexType></xs:element>
  <xs:simpleType name="two">
    <xs:annotation><xs:documentation>two digits</xs:documentation></xs:annotation>
    <xs:restriction base="xs:string"><xs:pattern value="[0-9]{2}"/></xs:restriction>
  </xs:simpleType>
</xs:schema>"""

_ROWS = {
    "name": "r",
    "children": [
        {"name": "l", "each": "lines", "children": [{"name": "n", "value": "name"}, {"name": "a", "value": "amount"}]}
    ],
}


@pytest.mark.parametrize("pretty", [True, False])
def test_what_does_not_fit_the_schema_names_the_line_the_element_and_what_was_expected(pretty: bool) -> None:
    data = {"lines": [{"name": "12", "amount": Decimal(1)}, {"name": "x", "amount": None}]}
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(_ROWS), data, pretty=pretty, schema=load_schema(_XSD))
    assert fault.value.code is FaultCode.INVALID_XML
    first, second = fault.value.findings
    assert first.message == "line 2: <n> is 'x', but should be two digits"
    assert first.path == "lines[1].name"
    assert first.key == "xml.invalid_value"
    assert first.params == {
        "element": "/r/l[2]/n",
        "line": 2,
        "xml_line": 8,
        "schema": "schema.xsd",
        "name": "n",
        "text": "x",
        "wanted": "two digits",
    }
    assert second.message == "line 2: <a> is empty, but should be decimal"


def test_missing_and_misplaced_elements_are_said_in_words() -> None:
    rows = {"name": "r", "children": [{"name": "l", "each": "lines", "children": [{"name": "a", "value": "amount"}]}]}
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(rows), {"lines": [{"amount": Decimal(1)}]}, pretty=False, schema=load_schema(_XSD))
    assert fault.value.findings[0].message == "line 1: <a> is not expected here, but <n>"
    short = {"name": "r", "children": [{"name": "l", "each": "lines", "children": [{"name": "n", "value": "'12'"}]}]}
    with pytest.raises(DocumentRejected) as fault:
        render(mapping(short), {"lines": [{"amount": Decimal(1)}]}, pretty=False, schema=load_schema(_XSD))
    assert fault.value.findings[0].message == "line 1: <l> lacks <a>"


def test_what_fits_is_returned_unchanged() -> None:
    data = {"lines": [{"name": "12", "amount": Decimal("1.0")}]}
    assert render(mapping(_ROWS), data, pretty=False, schema=load_schema(_XSD)) == render(
        mapping(_ROWS), data, pretty=False, schema=None
    )


def _including(location: str) -> bytes:
    return f"""<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:include schemaLocation="{location}"/>
      <xs:element name="r" type="t"/></xs:schema>""".encode()


_PART = b'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:simpleType name="t"><xs:restriction base="xs:string"/></xs:simpleType></xs:schema>'  # noqa: E501


def test_a_schema_includes_what_lies_beside_it_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "mapping"
    folder.mkdir()
    (folder / "part.xsd").write_bytes(_PART)
    (tmp_path / "outside.xsd").write_bytes(_PART)
    load_schema(_including("part.xsd"), beside=folder)
    outside = (tmp_path / "outside.xsd").as_uri()
    for location in (
        "../outside.xsd",
        outside,
        "http://example.com/x.xsd",
        "absent.xsd",
        "sub/part.xsd",
        "%2e%2e/outside.xsd",
    ):
        with pytest.raises(MappingFault):
            load_schema(_including(location), beside=folder)
    with pytest.raises(MappingFault, match="not beside it"):
        load_schema(_including("part.xsd"))


def test_a_schema_with_entities_is_refused(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    hostile = f'<!DOCTYPE x [<!ENTITY s SYSTEM "{secret.as_uri()}">]>'.encode() + _XSD
    with pytest.raises(MappingFault, match="document type"):
        load_schema(hostile)
    with pytest.raises(MappingFault, match="cannot be used"):
        load_schema(b"no schema")

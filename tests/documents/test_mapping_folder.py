"""An operator's folder of mappings: both layouts are found, and nothing is passed over in silence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import load
from waybill_documents.mapping_folder import read_folder

XS = 'xmlns:xs="http://www.w3.org/2001/XMLSchema"'
NUMBER = f'<xs:schema {XS}><xs:simpleType name="N"><xs:restriction base="xs:int"/></xs:simpleType></xs:schema>'
XSD = f'<xs:schema {XS}><xs:include schemaLocation="number.xsd"/></xs:schema>'


def mapping(name: str, **more: Any) -> str:
    return json.dumps({"format": 1, "name": name, "title": f"The {name}", **more})


def test_a_file_and_a_folder_are_mappings_and_their_schemas_belong_to_them(tmp_path: Path) -> None:
    with_schema = mapping("two_v1", xml={"root": {"name": "A"}, "xsd": "a.xsd"})
    (tmp_path / "one_v1.json").write_text(mapping("one_v1"))
    (tmp_path / "two_v1").mkdir()
    (tmp_path / "two_v1/mapping.json").write_text(with_schema)
    (tmp_path / "two_v1/a.xsd").write_text(XSD)
    (tmp_path / "two_v1/number.xsd").write_text(NUMBER)
    (tmp_path / "two_v1/unused.xsd").write_text(XSD)
    found = read_folder(tmp_path)
    assert {name: each.summary.title for name, each in found.mappings.items()} == {
        "one_v1": "The one_v1",
        "two_v1": "The two_v1",
    }
    two = found.mappings["two_v1"]
    assert set(two.files.schemas) == {"a.xsd", "number.xsd"}
    assert load(two.files).sha256 == load(tmp_path / "two_v1").sha256 == two.summary.sha256
    assert found.ignored == []


def test_what_is_no_mapping_is_told_and_what_is_hidden_is_nobodys_business(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / ".swp").write_text("")
    (tmp_path / "a.xsd").write_text(XSD)
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.md").write_text("")
    (tmp_path / "one_v1.JSON").write_text(mapping("one_v1"))
    found = read_folder(tmp_path)
    assert [path.name for path in found.ignored] == ["README.md", "empty", "one_v1.JSON"]
    assert found.mappings == {}


@pytest.mark.parametrize(
    ("files", "sentence"),
    [
        ({"one_v1.json": mapping("two_v1")}, "one_v1.json: the file must be called two_v1.json"),
        ({"one_v1/mapping.json": mapping("two_v1")}, "mapping.json: the folder must be called two_v1"),
        ({"one_v1.json": mapping("one_v1"), "one_v1/mapping.json": mapping("one_v1")}, "with this name already"),
        ({"oyo_v1.json": mapping("oyo_v1")}, "there is a shipped mapping with this name"),
        ({"one_v1.json": "{"}, "this is no mapping"),
        ({"one_v1.json": "[]"}, "this is no mapping"),
        ({"one_v1.json": "{}"}, "this is no mapping"),
        ({"one_v1.json": '{"name": 1, "title": "x"}'}, "this is no mapping"),
        ({"one_v1.json": "[" * 100_000}, "this is no mapping"),
    ],
)
def test_a_file_that_is_wrong_is_an_error(tmp_path: Path, files: dict[str, str], sentence: str) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    with pytest.raises(MappingFault, match=sentence):
        read_folder(tmp_path)


def test_a_folder_that_is_not_there_is_an_error_and_none_is_empty(tmp_path: Path) -> None:
    assert read_folder(None).mappings == {}
    with pytest.raises(MappingFault, match="no such folder"):
        read_folder(tmp_path / "nowhere")

"""Which findings a correction settles, and where missing values were looked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.pages import Printed, page, table
from support.records import Record, read_page, record_of
from waybill_documents.corrections import apply, read_record, revise
from waybill_documents.faults import FaultCode, MappingFault
from waybill_documents.geometry import Page
from waybill_documents.hybrid import LINE_TYPES, TYPES
from waybill_documents.mapping.loader import LoadedMapping, shipped
from waybill_documents.messages import tell
from waybill_documents.reading import Reading

MAPPING: dict[str, Any] = {
    "format": 1,
    "name": "test_v1",
    "title": "Test",
    "locale": {"base": "id"},
    "fields": {
        "number": {"label": "Nomor", "required": True},
        "issued": {"label": "Tanggal", "type": "date", "required": True},
        "rate": {"label": "Kurs", "type": "decimal", "decimals": 2},
        "place": {"label": "Tempat", "direction": "below", "page": "first"},
        "stamp": {"pattern": "STAMP", "area": {"top": 50}, "page": "last"},
    },
    "tables": {
        "lines": {
            "row": {"begins": "no"},
            "columns": {
                "no": {"header": "No", "type": "integer", "required": True},
                "name": {"header": "Nama"},
                "qty": {"header": "Qty", "type": "decimal", "decimals": 2, "required": True},
                "weight": {"header": "Berat", "type": "decimal", "optional": True},
            },
            "notes": {"note": "^Catatan (.*)"},
            "end": "Selesai",
        }
    },
    "computed": {"doubled": "rate * 2"},
    "checks": {"numbers": {"expect": "running(lines.no)"}},
}
HEADER = "No   Nama        Qty      Berat"


def read(*rows: str, head: tuple[Printed, ...] = (), foot: str = "Selesai") -> Reading:
    """A page with these rows, and a valid head unless another is given."""
    known = head or ((30, 20, "Nomor: A1"), (30, 40, "Tanggal: 7 Agustus 2025"))
    return read_page(MAPPING, page(*known, *table([HEADER, *rows, foot])))


def loaded(reading: Reading) -> LoadedMapping:
    return reading.loaded


def told(reading: Reading) -> list[tuple[str, str | None, object]]:
    return [(each.code.value, each.path, each.key) for each in reading.findings]


def assert_stays(reading: Reading) -> Record:
    """Assert that the record does not change when nothing is typed."""
    record = record_of(reading)
    assert read_record(loaded(reading), record) == reading.extracted
    assert record_of(revise(loaded(reading), record, []).reading) == record
    return record


def test_cells_that_cannot_be_read_are_told_until_they_are_typed() -> None:
    first = read("1    Kertas      3        1,5", "2    Pena        zwei     x", "3    Map")
    assert told(first) == [
        ("bad_value", "lines[1].qty", "cell.unreadable"),
        ("bad_value", "lines[1].weight", "cell.unreadable"),
        ("field_missing", "lines[2].qty", "cell.missing"),
    ]
    record = assert_stays(first)
    second = revise(loaded(first), record, [("lines[1].qty", "2")]).reading
    assert told(second) == told(first)[1:]
    third = revise(loaded(first), record_of(second), [("lines[1].weight", "2"), ("lines[2].qty", "1,25")])
    assert third.reading.findings == []


def test_a_record_of_release_0_1_0_has_no_keys_and_is_corrected_all_the_same() -> None:
    head = ((30, 20, "Nomor:"), (30, 40, "Tanggal: 7 Agustus 2025"), (30, 60, "Kurs: 1,234"))
    first = read("1    Kertas      3        1,5", "2    Pena        zwei", head=head)
    record = record_of(first)
    kinds = {"field.empty": "missing", "cell.unreadable": "unreadable", "value.too_precise": "decimals"}
    for finding in record["findings"]:
        finding["params"] = {"kind": kinds[finding.pop("key")]}
    again = revise(loaded(first), record, []).reading
    assert [(each.message, each.path) for each in again.findings] == [
        (each.message, each.path) for each in first.findings
    ]
    corrected = revise(loaded(first), record, [("lines[1].qty", "2"), ("rate", "1,23")]).reading
    assert [(each.path, each.message, tell(each, "id")) for each in corrected.findings] == [
        ("number", first.findings[0].message, first.findings[0].message)
    ]


def test_of_many_bad_cells_the_first_are_told_and_the_others_move_up() -> None:
    first = read(*[f"{number:<4} Kertas      viel" for number in range(1, 26)])
    assert len(first.findings) == 21
    assert first.findings[-1].key == "cell.unreadable_more"
    assert first.findings[-1].params == {"column": "lines.qty", "count": 5}
    record = assert_stays(first)
    typed = [(f"lines[{index}].qty", "1") for index in range(3)]
    second = revise(loaded(first), record, typed).reading
    assert [each.path for each in second.findings[:-1]] == [f"lines[{index}].qty" for index in range(3, 23)]
    assert second.findings[-1].message == "qty cannot be read in 2 more lines"
    assert second.findings[17].message == "line 21: qty: 'viel' is not a number such as 1.234,56"
    assert second.findings[17].box is not None


def test_a_number_with_too_many_digits_is_told_again_until_it_is_typed() -> None:
    head = ((30, 20, "Nomor: A1"), (30, 40, "Tanggal: 7 Agustus 2025"), (30, 60, "Kurs: 1,2345"))
    first = read("1    Kertas      3,999", head=head)
    assert told(first) == [
        ("bad_value", "rate", "value.too_precise"),
        ("bad_value", "lines[0].qty", "value.too_precise"),
    ]
    record = assert_stays(first)
    second = revise(loaded(first), record, [("rate", "1,23")]).reading
    assert told(second) == [("bad_value", "lines[0].qty", "value.too_precise")]
    assert str(second.extracted.fields["doubled"].value) == "2.46"
    assert revise(loaded(first), record_of(second), [("lines[0].qty", "4")]).reading.findings == []


def test_notes_are_texts_without_cells_that_could_be_missing() -> None:
    first = read("1    Kertas      3", "Catatan bebas ongkos", "2    Pena        1")
    assert first.findings == []
    record = assert_stays(first)
    assert record["data"]["lines"][1]["note"] == "bebas ongkos"
    second = revise(loaded(first), record, [("lines[1].note", "bebas ongkos kirim")])
    assert second.reading.findings == []
    assert second.changes[0].rule == "tables.lines.notes.note"
    assert assert_stays(second.reading)["data"]["lines"][1]["note"] == "bebas ongkos kirim"
    assert revise(loaded(first), record, [("lines[1].note", "")]).reading.findings == []


def test_a_column_that_is_missing_is_settled_when_every_row_has_its_value() -> None:
    first = read_page(
        MAPPING,
        page(
            (30, 20, "Nomor: A1"), (30, 40, "Tanggal: 7 Agustus 2025"), *table(["No   Nama", "1    Map", "2    Pena"])
        ),
    )
    assert told(first)[0] == ("table_missing", "lines", "table.column_missing")
    record = assert_stays(first)
    assert record["looked"]["lines.qty"][0]["page"] == 1
    half = revise(loaded(first), record, [("lines[0].qty", "1")]).reading
    assert told(half) == [
        ("table_missing", "lines", "table.column_missing"),
        ("field_missing", "lines[1].qty", "cell.missing"),
    ]
    assert revise(loaded(first), record_of(half), [("lines[1].qty", "1")]).reading.findings == []


def test_lines_that_nobody_understood_stay_findings() -> None:
    first = read("1    Kertas      3", "     Rabat       3", "2    Pena        1")
    assert told(first) == [("unread_line", "lines", "table.unread_line")]
    record = assert_stays(first)
    assert told(revise(loaded(first), record, [("number", "B")]).reading) == told(first)


def test_where_a_field_was_looked_for_is_beside_its_label_or_the_page() -> None:
    pages: tuple[Page, ...] = (
        page((30, 20, "Nomor:"), (30, 40, "Tempat"), *table([HEADER, "1    Map         3"])),
        page((30, 20, "Halaman dua"), number=2),
    )
    first = read_page(MAPPING, *pages)
    looked = assert_stays(first)["looked"]
    label, beside = looked["number"]
    assert (label["page"], label["box"]) == (1, [30, 20, 60, 30])
    assert beside["box"] == [60, 20, 595, 30]
    assert looked["place"][1]["box"][1] == 50
    assert [(each["page"], each["box"]) for each in looked["issued"]] == [(n, [0, 0, 595, 842]) for n in (1, 2)]
    assert looked["stamp"] == [{"page": 2, "box": [0, 421, 595, 842]}]
    after = revise(loaded(first), record_of(first), [("number", "A1")]).reading
    assert record_of(after)["looked"] == looked


def test_where_a_cell_was_looked_for_is_where_its_row_and_column_cross() -> None:
    looked = assert_stays(read("1    Kertas      3", "2    Map", "3    Pena        4"))["looked"]
    ((left, top, right, bottom),) = [each["box"] for each in looked["lines[1].qty"]]
    assert (top, bottom) == (124, 134)
    assert left < right
    assert left > 100


def test_a_table_without_rows_was_looked_for_on_every_page() -> None:
    first = read_page(MAPPING, page((30, 20, "Nomor: A1"), (30, 40, "Tanggal: 7 Agustus 2025")))
    assert told(first) == [("table_missing", "lines", "table.missing")]
    assert assert_stays(first)["looked"]["lines"] == [{"page": 1, "box": [0, 0, 595, 842]}]


@pytest.mark.parametrize(
    ("break_it", "said"),
    [
        (lambda record: record["mapping"].update(sha256="1" * 64), "The mapping has changed since this was converted"),
        (lambda record: record["mapping"].update(name="other_v1"), "another mapping"),
        (lambda record: record.pop("data"), "no 'data'"),
        (lambda record: record.pop("carries"), "no 'carries'"),
        (lambda record: record["data"].pop("number"), "does not have the value"),
        (lambda record: record["data"].update(rate=1.5), "not of the type decimal"),
        (lambda record: record["data"].update(rate="NaN"), "not of the type decimal"),
        (lambda record: record["data"].update(rate="9" * 100), "not of the type decimal"),
        (lambda record: record["data"].update(issued="2025-02-30"), "not of the type date"),
        (lambda record: record["data"].update(number=["x"]), "not of the type text"),
        (lambda record: record["data"]["lines"][0].update(no=True), "not of the type integer"),
        (lambda record: record["data"]["lines"].append({}), "too many rows"),
        (lambda record: record["data"].update(lines={}), "no 'lines'"),
        (lambda record: record["data"]["lines"][0].update(other="1"), "other columns"),
        (lambda record: record["provenance"]["fields"]["number"].update(confidence=101), "from 0 to 100"),
        (lambda record: record["provenance"]["fields"]["number"].update(box=[1, 2, 3]), "four numbers"),
        (lambda record: record["provenance"]["fields"]["number"].update(page=0), "which page the value is on"),
        (lambda record: record["provenance"]["fields"]["number"].update(rule=None), "which rule"),
        (lambda record: record.update(findings=[{"message": "x", "code": "nonsense"}]), "an invalid finding"),
        (lambda record: record.update(looked={"number": 1}), "where the value is on the page"),
    ],
)
def test_a_record_that_does_not_fit_the_mapping_is_refused(break_it: Any, said: str) -> None:
    reading = read("1    Kertas      3")
    record = record_of(reading)
    break_it(record)
    with pytest.raises(MappingFault, match=said):
        revise(loaded(reading), record, [("number", "B")])


def nodes(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all parts of a JSON document."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in inner:
        yield (*path, key)
        yield from nodes(value, (*path, key))


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**30) | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


@given(data=st.data())
@settings(max_examples=150)
def test_a_record_with_anything_in_any_place_is_read_or_refused(data: st.DataObject) -> None:
    reading = read("1    Kertas      3", "2    Pena        zwei", "Catatan x", "3    Map         1,999")
    record = record_of(reading)
    *way, last = data.draw(st.sampled_from(list(nodes(record))))
    node: Any = record
    for key in way:
        node = node[key]
    if data.draw(st.booleans()):
        del node[last]
    else:
        node[last] = data.draw(anything)
    with suppress(MappingFault):
        read_record(loaded(reading), record)
    with suppress(MappingFault):
        revised = revise(loaded(reading), record, [("lines[1].qty", "2"), ("number", "B")]).reading
        assert all(tell(finding, "id") for finding in revised.findings)


def test_an_embedded_invoice_comes_back_and_cannot_be_corrected() -> None:
    cii = shipped("en16931_cii")
    assert cii is not None
    value = {"rule": "embedded:/x", "raw": "1", "confidence": 100}
    plain = {"text": "1", "decimal": "1.00", "date": "2025-08-07"}
    record: Record = {
        "mapping": {"name": "en16931_cii", "title": "", "sha256": cii.sha256},
        "source": {"kind": "pdf", "attachment": "factur-x.xml", "profile": "en16931"},
        "data": {name: plain[type_] for name, type_ in TYPES.items()}
        | {"lines": [{name: plain[type_] for name, type_ in LINE_TYPES.items()}]},
        "provenance": {
            "fields": dict.fromkeys(TYPES, value),
            "tables": {"lines": [dict.fromkeys(LINE_TYPES, value)]},
        },
        "checks": [{"name": "br_co_10", "passed": True, "required": True, "findings": [], "values": ["line_total"]}],
        "findings": [],
        "carries": {},
        "looked": {},
        "review": {"below": None, "essential": [], "disproved": []},
    }
    revised = revise(cii, record, [("number", "2"), ("lines[0].net", "2")])
    assert [(each.code, each.path, each.key) for each in revised.refused] == [
        (FaultCode.BAD_VALUE, path, "correction.embedded") for path in ("number", "lines[0].net")
    ]
    assert revised.changes == []
    assert record_of(revised.reading) == record | {"mapping": record["mapping"] | {"title": cii.mapping.title}}
    assert apply(cii, record, []).extracted == revised.reading.extracted

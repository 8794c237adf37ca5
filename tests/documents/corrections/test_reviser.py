"""A clerk corrects values: only these change, everything that depends on them is computed again, nothing is lost."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.invoices import LAYOUTS, make_invoice, make_layout, reference_invoice
from support.invoices.strategies import invoices, layouts
from support.invoices.tamper import unknown_unit, without_buyer_npwp, wrong_amount
from support.records import Record, pt_simon_loaded, read_invoice, record_of
from waybill_documents.corrections import CORRECTED, Change, apply, choices, read_record, revise
from waybill_documents.faults import FaultCode, MappingFault
from waybill_documents.locales import locale_rules
from waybill_documents.reading import Reading
from waybill_documents.value_text import show
from waybill_documents.values import Extracted, Value

LOADED = pt_simon_loaded()
LOCALE = locale_rules(LOADED.mapping.locale)


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """A good invoice of two pages, one of a few lines, and two that fail."""
    folder = tmp_path_factory.mktemp("records")
    printed = [
        reference_invoice(40),
        (make_invoice(3, 5), LAYOUTS[0]),
        (without_buyer_npwp(make_invoice(4, 6)), LAYOUTS[0]),
        (wrong_amount(make_invoice(5, 8), 3), LAYOUTS[-1]),
    ]
    return [record_of(read_invoice(invoice, layout, folder)) for invoice, layout in printed]


def values(extracted: Extracted) -> Iterator[tuple[str, Value]]:
    """Everything that was read, by its path."""
    yield from ((name, value) for name, value in extracted.fields.items() if name in LOADED.mapping.fields)
    for table, rows in extracted.tables.items():
        for index, row in enumerate(rows):
            columns = LOADED.mapping.tables[table].columns
            yield from ((f"{table}[{index}].{name}", value) for name, value in row.items() if name in columns)


def test_a_record_comes_back_as_what_was_read(tmp_path: Path) -> None:
    for seed in range(4):
        reading = read_invoice(make_invoice(seed, 30), make_layout(seed), tmp_path)
        assert read_record(LOADED, record_of(reading)) == reading.extracted


@given(invoice=invoices(max_lines=6), layout=layouts())
@settings(max_examples=6)
def test_any_record_comes_back_and_stays_as_it_is_when_nothing_is_typed(
    invoice: Any, layout: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reading = read_invoice(invoice, layout, tmp_path_factory.mktemp("any"))
    record = record_of(reading)
    assert read_record(LOADED, record) == reading.extracted
    assert_same(revise(LOADED, record, []).reading, record)


def test_failed_records_come_back_and_stay_as_they_are(records: list[Record]) -> None:
    assert [bool(record["findings"]) for record in records] == [False, False, True, True]
    for record in records:
        assert_same(revise(LOADED, record, []).reading, record)


def assert_same(reading: Reading, record: Record) -> None:
    made = record_of(reading)
    for part, content in record.items():
        assert made[part] == content, part


typed_texts = st.one_of(
    st.just(""),
    st.just("-"),
    st.sampled_from(
        ["pcs", "KG", "pikul", "7 Agustus 2025", "2025-08-07", "12/03/2026", "1234.50", "0012", "Rp 5", "x"]
    ),
    st.decimals(-10, 10**9, places=2).map(lambda value: show(value, LOCALE)),
    st.integers(0, 10**6).map(str),
    st.text(max_size=20),
)


@given(data=st.data())
@settings(max_examples=25)
def test_a_correction_touches_no_other_value_and_the_log_makes_the_next_record(
    records: list[Record], data: st.DataObject
) -> None:
    record = data.draw(st.sampled_from(records))
    before = dict(values(read_record(LOADED, record)))
    paths = data.draw(st.lists(st.sampled_from(sorted(before)), min_size=1, max_size=4, unique=True))
    kept = copy.deepcopy(record)
    revised = revise(LOADED, record, [(path, data.draw(typed_texts)) for path in paths])
    assert record == kept
    after = dict(values(revised.reading.extracted))
    changed = {change.path: change for change in revised.changes}
    assert {finding.path for finding in revised.refused}.isdisjoint(changed)
    for path, value in after.items():
        was = before[path]
        assert value.places == was.places
        if path in changed:
            assert value.rule == CORRECTED
            assert value.value != was.value
            assert value.raw == changed[path].typed.strip()
        else:
            assert (value.value, value.raw, value.rule) == (was.value, was.raw, was.rule)
    following = record_of(revised.reading)
    log = [Change.from_json(json.loads(json.dumps(change.to_json()))) for change in revised.changes]
    assert record_of(apply(LOADED, record, log)) == following
    assert read_record(LOADED, following) == revised.reading.extracted


def test_a_value_that_is_typed_back_gives_the_first_record_again_but_for_its_origin(records: list[Record]) -> None:
    first = records[0]
    printed = first["provenance"]["tables"]["lines"][7]["amount"]["raw"]
    there = record_of(revise(LOADED, first, [("lines[7].amount", "1,00")]).reading)
    assert there["findings"]
    back = record_of(revise(LOADED, there, [("lines[7].amount", printed)]).reading)
    assert back["data"] == first["data"]
    assert (back["checks"], back["findings"]) == (first["checks"], [])
    corrected = back["provenance"]["tables"]["lines"][7]["amount"]
    found = first["provenance"]["tables"]["lines"][7]["amount"]
    assert (corrected["rule"], corrected["raw"], corrected["confidence"]) == (CORRECTED, printed, 100)
    assert (corrected["page"], corrected["box"]) == (found["page"], found["box"])
    back["provenance"]["tables"]["lines"][7]["amount"] = found
    assert back["provenance"] == first["provenance"]


def test_a_wrong_amount_is_found_at_once_and_lowers_the_confidence_of_what_it_contradicts(
    records: list[Record],
) -> None:
    revised = revise(LOADED, records[0], [("lines[7].amount", "1,00")])
    rules = {finding.rule for finding in revised.reading.findings}
    assert {"checks.line_totals", "checks.subtotal"} <= rules
    line = revised.reading.extracted.tables["lines"][7]
    assert line["qty"].confidence == 30
    assert line["vat"].value == Decimal("0.11")


def test_what_was_missing_can_be_typed_and_the_document_is_accepted(records: list[Record]) -> None:
    failed = records[2]
    assert [(finding["code"], finding["path"]) for finding in failed["findings"]] == [("field_missing", "buyer_npwp")]
    revised = revise(LOADED, failed, [("buyer_npwp", "01.234.567.8-901.000")])
    assert revised.changes == [
        Change("buyer_npwp", None, "012345678901000", "fields.buyer_npwp", "01.234.567.8-901.000")
    ]
    revised.reading.accept()
    assert b"0012345678901000" in revised.reading.xml(pretty=False)


def test_an_unknown_unit_is_corrected_from_the_list(tmp_path: Path) -> None:
    reading = read_invoice(unknown_unit(make_invoice(7, 4), 2), LAYOUTS[0], tmp_path)
    assert [finding.code for finding in reading.findings] == [FaultCode.UNKNOWN_LOOKUP]
    assert "lusin" in choices(LOADED, "lines[1].unit")
    assert choices(LOADED, "lines.unit") == choices(LOADED, "lines[1].unit")
    assert choices(LOADED, "lines[1].name") == []
    assert choices(LOADED, "number") == []
    revised = revise(LOADED, record_of(reading), [("lines[1].unit", "Lusin")])
    assert revised.reading.findings == []
    assert revised.reading.extracted.tables["lines"][1]["unit_code"].value == "UM.0017"


@pytest.mark.parametrize(
    ("path", "typed", "value"),
    [
        ("subtotal", "37.050,50", Decimal("37050.50")),
        ("subtotal", "37050.50", Decimal("37050.50")),
        ("subtotal", "Rp 37.050,-", Decimal(37050)),
        ("subtotal", "12.500", Decimal(12500)),
        ("subtotal", "-12.5", Decimal("-12.5")),
        ("date", "7 Agustus 2031", date(2031, 8, 7)),
        ("date", "2031-08-07", date(2031, 8, 7)),
        ("date", " 07/08/2031 ", date(2031, 8, 7)),
        ("lines[0].no", "12", 12),
        ("lines[0].name", "  Kertas \n A4  ", "Kertas A4"),
        ("lines[0].discount", "", Decimal(0)),
        ("lines[0].discount", "-", Decimal(0)),
        ("lines[0].code", "", None),
        ("due_date", "", None),
        ("seller_npwp", "01.234", "01234"),
    ],
)
def test_texts_are_read_as_the_document_prints_them(
    records: list[Record], path: str, typed: str, value: object
) -> None:
    # The typed text differs from the first value or has the same meaning.
    revised = revise(LOADED, records[1], [(path, typed)])
    assert revised.refused == []
    assert dict(values(revised.reading.extracted))[path].value == value


@pytest.mark.parametrize(
    ("path", "typed", "key"),
    [
        ("subtotal", "abc", "text.not_a_number"),
        ("subtotal", "1234.567", "text.not_a_number"),
        ("subtotal", "1e5", "text.not_a_number"),
        ("subtotal", "1,005", "number.too_many_decimals"),
        ("date", "31 Februari 2025", "text.not_a_date"),
        ("date", "2025-13-01", "text.not_a_date"),
        ("lines[0].no", "1,5", "text.not_a_whole_number"),
        ("seller_npwp", "none", "text.no_digits"),
        ("lines[0].name", "a\x00b", "text.unwritable"),
        ("lines[0].name", "a\ud800", "text.unwritable"),
        ("lines[0].name", "x" * 10_001, "text.too_long"),
        ("lines[0].tax_base", "1", "correction.computed"),
        ("seller_tin", "1", "correction.computed"),
        ("lines[999].amount", "1", "correction.unknown"),
        ("lines[-1].amount", "1", "correction.unknown"),
        ("lines[00].amount", "1", "correction.unknown"),
        ("lines[0]", "1", "correction.unknown"),
        ("lines", "1", "correction.unknown"),
        ("lines[0].nothing", "1", "correction.unknown"),
        ("pages", "1", "correction.unknown"),
        ("", "1", "correction.unknown"),
        ("__class__", "1", "correction.unknown"),
    ],
)
def test_what_cannot_be_taken_is_refused_and_changes_nothing(
    records: list[Record], path: str, typed: str, key: str
) -> None:
    revised = revise(LOADED, records[1], [(path, typed), ("number", "INV-1")])
    (refused,) = revised.refused
    assert (refused.path, refused.params.get("why", {}).get("key", refused.key)) == (path, key)
    assert [change.path for change in revised.changes] == ["number"]
    assert record_of(revised.reading) == record_of(revise(LOADED, records[1], [("number", "INV-1")]).reading)


def test_of_two_texts_for_one_value_the_last_counts_and_the_present_one_is_no_change(records: list[Record]) -> None:
    number = records[1]["data"]["number"]
    assert revise(LOADED, records[1], [("number", "A"), ("number", number)]).changes == []
    twice = revise(LOADED, records[1], [("number", "A"), ("number", "B")])
    assert [(change.before, change.after) for change in twice.changes] == [(number, "B")]


def test_a_required_value_that_is_emptied_is_a_finding_until_it_is_typed_again(records: list[Record]) -> None:
    emptied = revise(LOADED, records[1], [("number", ""), ("lines[2].name", "-")]).reading
    assert [(each.code, each.path) for each in emptied.findings] == [
        (FaultCode.FIELD_MISSING, "number"),
        (FaultCode.FIELD_MISSING, "lines[2].name"),
    ]
    record = record_of(emptied)
    assert_same(revise(LOADED, record, []).reading, record)
    filled = revise(LOADED, record, [("number", "1"), ("lines[2].name", "Kertas")]).reading
    assert filled.findings == []


def test_markup_that_is_typed_is_text_in_the_xml(records: list[Record]) -> None:
    typed = "<script>alert('1')</script> & ]]>"
    xml = revise(LOADED, records[1], [("lines[0].name", typed)]).reading.xml(pretty=False)
    assert b"&lt;script&gt;alert('1')&lt;/script&gt; &amp; ]]&gt;" in xml


def test_a_change_that_does_not_fit_the_record_is_not_replayed(records: list[Record]) -> None:
    change = Change("number", "another", "B", "fields.number", "B")
    with pytest.raises(MappingFault, match="another value"):
        apply(LOADED, records[1], [change])
    with pytest.raises(MappingFault, match="no value here that can be corrected"):
        apply(LOADED, records[1], [Change("seller_tin", "1", "2", "computed.seller_tin", "2")])
    with pytest.raises(MappingFault, match="not of the type decimal"):
        subtotal = records[1]["data"]["subtotal"]
        apply(LOADED, records[1], [Change("subtotal", subtotal, "x", "fields.subtotal", "x")])
    wrongs: tuple[Any, ...] = ({}, [], None, change.to_json() | {"more": 1}, change.to_json() | {"to": 1.5})
    for wrong in wrongs:
        with pytest.raises(MappingFault):
            Change.from_json(wrong)

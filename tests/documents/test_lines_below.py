"""A value below its label is found however the two are aligned, and a value below another label is not taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reportlab.pdfgen.canvas import Canvas

from support.pages import HEIGHT, Printed, drawn, extract_file, extract_pages, page
from waybill_documents.extraction import Extraction
from waybill_documents.mapping.model import Mapping
from waybill_documents.values import Value

LEFT, MIDDLE, RIGHT = "left", "middle", "right"


def mapping(**fields: Any) -> Mapping:
    return Mapping.model_validate({"format": 1, "name": "test_v1", "title": "Test", "fields": fields})


def put(canvas: Canvas, x: float, y: float, text: str, align: str = LEFT, size: float = 10) -> None:
    canvas.setFont("Helvetica", size)
    draw = {LEFT: canvas.drawString, MIDDLE: canvas.drawCentredString, RIGHT: canvas.drawRightString}[align]
    draw(x, HEIGHT - y, text)


def read(path: Path, *printed: tuple[Any, ...], **fields: Any) -> Extraction:
    def draw(canvas: Canvas) -> None:
        for each in printed:
            put(canvas, *each)

    return extract_file(mapping(**fields), drawn(path / "page.pdf", draw))


def below(path: Path, *printed: tuple[Any, ...], label: str = "Invoice", **rule: Any) -> Value:
    return read(path, *printed, it={"label": label, "direction": "below", **rule}).extracted.fields["it"]


@pytest.mark.parametrize("align", [LEFT, MIDDLE, RIGHT])
@pytest.mark.parametrize("number", ["7", "INV-12", "INV/2025/08/00000000012"])
def test_a_value_below_its_label(align: str, number: str, tmp_path: Path) -> None:
    found = below(tmp_path, (300, 100, "Invoice", align), (300, 114, number, align))
    assert (found.value, found.confidence) == (number, 95)


@pytest.mark.parametrize("align", [LEFT, MIDDLE, RIGHT])
def test_several_lines_below_a_label(align: str, tmp_path: Path) -> None:
    lines = ["PT Maju Bersama Sejahtera", "Jl. Melati 5", "12190 Jakarta"]
    printed = [(300, 114 + 12 * number, text, align) for number, text in enumerate(lines)]
    found = below(tmp_path, (300, 100, "Kepada", align), *printed, label="Kepada", lines="1-", join=", ")
    assert found.value == ", ".join(lines)


@pytest.mark.parametrize("align", [LEFT, MIDDLE, RIGHT])
@pytest.mark.parametrize("size", [8, 10, 22])
def test_a_row_of_labels_over_a_row_of_values(align: str, size: float, tmp_path: Path) -> None:
    labels = {"number": "Invoice", "date": "Date", "customer": "Your ref", "terms": "Terms"}
    values = ["INV/2025/0012", "7 August 2025", "12", "30 days net"]
    printed = [
        (150 + 120 * at, y, text, align, its)
        for y, its, texts in ((100, size, labels.values()), (100 + 1.4 * size, 10, values))
        for at, text in enumerate(texts)
    ]
    rules = {name: {"label": label, "direction": "below"} for name, label in labels.items()}
    found = read(tmp_path, *printed, **rules).extracted.fields
    assert [value.value for value in found.values()] == values


def test_what_is_below_another_label_is_not_taken(tmp_path: Path) -> None:
    printed = [(100, 100, "Penjual"), (170, 100, "Pembeli")]
    found = below(tmp_path, *printed, (100, 114, "PT Simon Jaya Abadi Sejahtera"), label="Pembeli")
    assert found.value is None
    assert below(tmp_path, *printed, (100, 114, "PT Simon Jaya Abadi"), label="Penjual").value == "PT Simon Jaya Abadi"


def test_a_value_centred_below_the_label_beside_it_is_not_taken(tmp_path: Path) -> None:
    printed = [(100, 100, "Invoice"), (190, 100, "Date", MIDDLE), (190, 114, "Thursday, 7 August 2025", MIDDLE)]
    assert below(tmp_path, *printed).value is None
    assert below(tmp_path, *printed, label="Date").value == "Thursday, 7 August 2025"


def test_a_label_in_two_lines_above_its_value(tmp_path: Path) -> None:
    printed = [
        (100, 100, "Invoice"),
        (100, 111, "number"),
        (100, 124, "INV-12"),
        (200, 100, "Invoice"),
        (200, 111, "date"),
    ]
    assert below(tmp_path, *printed, (200, 124, "7 May"), label="Invoice number").value == "INV-12"
    assert below(tmp_path, *printed, (200, 124, "7 May"), label="Invoice date").value == "7 May"


def test_a_value_with_its_unit_on_the_next_line(tmp_path: Path) -> None:
    printed = [(300, 100, "Amount due", RIGHT), (300, 114, "EUR 1,234.50", RIGHT), (300, 126, "incl. VAT", RIGHT)]
    found = below(tmp_path, *printed, label="Amount due", type="decimal")
    assert (str(found.value), found.raw) == ("1234.50", "EUR 1,234.50")


# The exact label is better than a longer one.


def pages(*strings: Printed, **fields: Any) -> Extraction:
    return extract_pages(mapping(**fields), page(*strings))


@pytest.mark.parametrize("direction", ["right", "below"])
@pytest.mark.parametrize("longer", ["Invoice date", "Tax Invoice", "Pro forma Invoice date"])
def test_the_exact_label_is_preferred_to_a_longer_one(direction: str, longer: str) -> None:
    x, y = (100.0, 0.0) if direction == "right" else (0.0, 14.0)
    strings: list[Printed] = [
        (30, 100, longer),
        (30 + x * 2, 100 + y, "no value"),
        (300, 200, "Invoice"),
        (300 + x, 200 + y, "12"),
    ]
    found = pages(*strings, it={"label": "Invoice", "direction": direction}).extracted.fields["it"]
    assert (found.value, found.confidence) == ("12", 95 if direction == "below" else found.confidence)


def test_a_label_with_a_colon_is_preferred_to_a_longer_one_with_a_colon() -> None:
    found = pages((30, 100, "Invoice date: 7 May"), (30, 120, "Invoice: 12"), it={"label": "Invoice"})
    assert (found.extracted.fields["it"].value, found.extracted.fields["it"].confidence) == ("12", 95)
    found = pages((30, 100, "Due date: 8 May"), (30, 120, "Date: 7 May"), it={"label": "Date"})
    assert found.extracted.fields["it"].value == "7 May"


def test_a_longer_label_of_the_mapping_is_not_the_shorter_one() -> None:
    fields: dict[str, Any] = {"it": {"label": "Date"}, "due": {"label": "Due date"}}
    found = pages((30, 100, "Due date 8 May"), (30, 120, "Date 7 May"), **fields).extracted.fields
    assert [(each.value, each.confidence) for each in found.values()] == [("7 May", 95), ("8 May", 95)]


def test_the_exact_label_on_a_later_page_is_preferred() -> None:
    found = extract_pages(
        mapping(it={"label": "Invoice"}),
        page((30, 100, "Invoice date: 7 May")),
        page((30, 100, "Invoice: 12"), number=2),
    )
    assert (found.extracted.fields["it"].value, found.extracted.fields["it"].confidence) == ("12", 95)


def test_a_longer_label_is_used_where_there_is_no_other() -> None:
    found = pages((30, 100, "Invoice no: 12"), it={"label": "Invoice", "pattern": "[0-9]+"})
    assert found.extracted.fields["it"].value == "12"


# What is said when there is no value.


@pytest.mark.parametrize(
    ("strings", "rule", "message"),
    [
        ([(30, 100, "Invoice")], {"direction": "right"}, "there is nothing beside “Invoice” on page 1."),
        ([(30, 100, "Invoice")], {"direction": "below"}, "there is nothing below “Invoice” on page 1."),
        ([(30, 100, "Invoice")], {"direction": "block"}, "there is nothing beside or below “Invoice” on page 1."),
        (
            [(30, 100, "Invoice"), (30, 112, "12")],
            {"direction": "below", "lines": "3-"},
            "the text at “Invoice” on page 1 has no line 3-.",
        ),
        (
            [(30, 100, "Invoice"), (30, 112, "twelve")],
            {"direction": "below", "pattern": "^[0-9]+$"},
            "“twelve” at “Invoice” on page 1 does not look like this value.",
        ),
        (
            [(30, 100, "Invoice : twelve")],
            {"pattern": "^[0-9]+$"},
            "“twelve” at “Invoice” on page 1 does not look like this value.",
        ),
    ],
)
def test_a_missing_value_is_explained_truthfully(strings: list[Printed], rule: dict[str, Any], message: str) -> None:
    (finding,) = pages(*strings, it={"label": "Invoice", "required": True, **rule}).findings
    assert finding.message == f"it was not found: {message}"


def test_a_text_that_the_pattern_refuses_is_shown_where_it_stands() -> None:
    rule = {"label": "Invoice", "direction": "below", "pattern": "^[0-9]+$", "required": True}
    (finding,) = pages((30, 100, "Invoice"), (30, 112, "twelve"), it=rule).findings
    assert finding.box == (30, 112, 60, 122)

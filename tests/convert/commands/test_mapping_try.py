"""`waybill mapping try`: what a mapping makes of a document, for a person, for a program and as a picture."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest
from lxml import etree
from reportlab.pdfgen.canvas import Canvas
from rich.cells import cell_len

from support.command_line import COLOURS, Waybill, assert_harmless, on_a_terminal
from support.invoices import LAYOUTS, make_invoice, print_invoice, reference_invoice
from support.invoices.tamper import unknown_unit, wrong_amount
from support.sheets import Rows, workbook
from support.workbooks import packed

SIMON = "pt_simon_invoice_v1"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.pdf"
    path.write_bytes(print_invoice(make_invoice(5, 12), LAYOUTS[0]))
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    path = tmp_path / "bad.pdf"
    path.write_bytes(print_invoice(wrong_amount(unknown_unit(make_invoice(5, 12), 3), 7), LAYOUTS[0]))
    return path


async def test_a_document_that_converts_is_reported_whole(bare: Waybill, good: Path) -> None:
    ran = await bare("mapping", "try", good, SIMON, COLUMNS="80")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0] == f"{SIMON} · PT Simon invoice to Coretax e-Faktur"
    assert ran.lines[-1] == "Converted."
    headings = [line for line in ran.lines if line and not line.startswith(" ")]
    assert headings[1:-1] == ["Fields", "lines: 12 rows", "Checks", "XML", "Time"]
    assert "  ✓  line_totals" in ran.lines
    assert re.search(r"total [0-9.]+ ms$", ran.out, re.MULTILINE)


@pytest.mark.parametrize("columns", [80, 60, 120])
async def test_nothing_is_wider_than_the_terminal(bare: Waybill, good: Path, bad: Path, columns: int) -> None:
    for path in (good, bad):
        ran = await bare("mapping", "try", path, SIMON, COLUMNS=str(columns))
        assert [line for line in ran.lines if cell_len(line) > columns] == []


async def test_a_long_table_shows_its_ends(bare: Waybill, tmp_path: Path) -> None:
    invoice, layout = reference_invoice(60)
    (tmp_path / "long.pdf").write_bytes(print_invoice(invoice, layout))
    lines = (await bare("mapping", "try", "long.pdf", SIMON, "--rows", "2")).lines
    start = lines.index("lines: 60 rows") + 2
    assert [line.split()[0] for line in lines[start : start + 5]] == ["1", "2", "…", "59", "60"]


async def test_columns_that_do_not_fit_are_named(bare: Waybill, good: Path) -> None:
    narrow = (await bare("mapping", "try", good, SIMON, COLUMNS="80")).out
    assert "  also: " in narrow
    assert "(--json has them)" in narrow
    header = next(line for line in narrow.splitlines() if line.split()[:1] == ["no"])
    assert header.split()[-1] == "amount"
    assert "also: " not in (await bare("mapping", "try", good, SIMON)).out


async def test_a_document_at_fault_says_what_and_where(bare: Waybill, bad: Path) -> None:
    ran = await bare("mapping", "try", bad, SIMON, "-o", "out.xml", COLUMNS="80")
    assert ran.code == 1
    assert ran.lines[-1] == "Not converted: 2 findings."
    findings = ran.out.split("\nFindings\n")[1]
    assert "1  unknown_lookup  line 3: there is no unit code for 'pikul'" in findings
    assert "1  check_failed    line 7: " in findings
    assert "XML" not in ran.lines
    assert not Path("out.xml").exists()


async def test_sentences_come_in_the_clerks_language(bare: Waybill, bad: Path) -> None:
    assert "baris 7: " in (await bare("mapping", "try", bad, SIMON, "--lang", "id")).out
    assert "baris 7: " not in (await bare("mapping", "try", bad, SIMON)).out
    assert (await bare("mapping", "try", bad, SIMON, "--lang", "xx")).code == 2


async def test_programs_get_everything(bare: Waybill, good: Path, bad: Path) -> None:
    found = (await bare("mapping", "try", good, SIMON, "--json")).json
    assert (found["converted"], found["recognised"], found["fault"], found["findings"]) == (True, True, None, [])
    assert len(found["data"]["lines"]) == len(found["provenance"]["tables"]["lines"]) == 12
    assert etree.fromstring(found["xml"].encode()).tag == "TaxInvoiceBulk"
    assert found["milliseconds"] > 0
    ran = await bare("mapping", "try", bad, SIMON, "--json")
    assert ran.code == 1
    assert [finding["code"] for finding in ran.json["findings"]] == ["unknown_lookup", "check_failed"]
    assert ran.json["xml"] is None
    assert len(ran.json["data"]["lines"]) == 12


async def test_the_xml_is_written(bare: Waybill, good: Path) -> None:
    ran = await bare("mapping", "try", good, SIMON, "-o", "out.xml")
    assert ran.code == 0
    assert "Wrote out.xml" in ran.err
    assert etree.parse("out.xml").getroot().tag == "TaxInvoiceBulk"
    assert (await bare("mapping", "try", good, SIMON, "-o", "no/such/out.xml")).code == 2


async def test_a_document_of_another_is_not_recognised(bare: Waybill, good: Path) -> None:
    ran = await bare("mapping", "try", good, "oyo_v1", COLUMNS="80")
    assert ran.code == 1
    assert "  recognised  no" in ran.lines
    assert "it lacks “PAYMENT RECEIPT”" in " ".join(ran.out.split())
    assert (await bare("mapping", "try", good, "oyo_v1", "--json")).json["recognised"] is False


async def test_a_hybrid_invoice_that_is_none_is_a_finding(bare: Waybill, good: Path) -> None:
    ran = await bare("mapping", "try", good, "en16931_cii")
    assert ran.code == 1
    assert "no_embedded_invoice" in ran.out


SHEET_MAPPING = {
    "format": 1,
    "name": "sheet_v1",
    "title": "Sheet",
    "locale": {"base": "de"},
    "fields": {"total": {"type": "decimal", "label": "Summe", "required": True}},
    "xml": {"root": {"name": "T", "value": "total"}},
}


async def test_a_workbook_is_tried_like_a_pdf(bare: Waybill, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(json.dumps(SHEET_MAPPING))
    path = workbook(tmp_path / "a.xlsx", {"Blatt 1": [["Rechnung"], ["Summe", 37.05]], "Notiz": []}, hidden=["Notiz"])
    ran = await bare("mapping", "try", path, "m.json", "--html", "out.html", COLUMNS="80")
    assert (ran.code, ran.lines[-1]) == (0, "Converted.")
    assert "  document    a.xlsx, 1 sheet" in ran.lines
    assert "  total    95  'Blatt 1'!B2  37.05  37,05" in ran.lines
    assert "A sheet has no page image." in Path("out.html").read_text()
    assert "&#x27;Blatt 1&#x27;!B2" in Path("out.html").read_text()
    found = (await bare("mapping", "try", path, "m.json", "--json")).json
    assert found["provenance"]["fields"]["total"]["cell"] == "'Blatt 1'!B2"
    wrong = workbook(tmp_path / "b.xlsx", {"A": [["Summe", "viel"]]})
    ran = await bare("mapping", "try", wrong, "m.json", COLUMNS="80")
    assert ran.code == 1
    assert "  A!B1  bad_value  total: 'viel' is not a number such as 1.234,56" in ran.lines


async def test_the_cells_of_a_workbook_are_shown_with_their_names(bare: Waybill, tmp_path: Path) -> None:
    rows: Rows = [[None, "Kunde", "Huber\nWien"], [], [(45876.0, "date"), 37.05]]
    path = workbook(tmp_path / "a.xlsx", {"Blatt 1": rows, "Notiz": [[1]]}, hidden=["Notiz"])
    ran = await bare("mapping", "text", path)
    assert ran.lines == [
        "sheet 1 of 2 “Blatt 1”",
        "B1 Kunde │ C1 Huber ⏎ Wien",
        "A3 2025-08-07 │ B3 37.05",
        "sheet 2 of 2 “Notiz”, hidden",
        "A1 1",
    ]
    [sheet] = (await bare("mapping", "text", path, "--page", "2", "--json")).json
    assert sheet == {"sheet": 2, "name": "Notiz", "hidden": True, "rows": [[{"cell": "A1", "text": "1"}]]}
    (tmp_path / "a.csv").write_text("Summe;37,05\n\nx;y\n")
    assert (await bare("mapping", "text", "a.csv")).lines == ["sheet 1 of 1", "A1 Summe │ B1 37,05", "A3 x │ B3 y"]
    (tmp_path / "a.docx").write_bytes(packed({"[Content_Types].xml": "<a/>", "word/document.xml": "<a/>"}))
    ran = await bare("mapping", "text", "a.docx")
    assert (ran.code, ran.out) == (1, "")


async def test_a_broken_mapping_is_a_fault_of_its_own(bare: Waybill, good: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.json").write_text('{"format": 1, "name": "x_v1", "title": "X", "fields": {"a": {}}}')
    ran = await bare("mapping", "try", good, "mine.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("mine.json:1:56: fields.a: say how to find it")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n", b"%PDF-1.7\n"], ids=["empty", "image", "cut"])
async def test_what_is_no_pdf_is_a_fault_of_the_document(bare: Waybill, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.pdf").write_bytes(content)
    ran = await bare("mapping", "try", "x.pdf", SIMON, "--html", "x.html")
    assert ran.code == 1
    assert "unreadable" in ran.out
    assert "damaged" in Path("x.html").read_text()


async def test_a_file_that_is_not_there_is_a_slip_of_the_pen(bare: Waybill) -> None:
    assert (await bare("mapping", "try", "nothing.pdf", SIMON)).code == 2


# Pictures.


class Page(HTMLParser):
    """What a browser would make of the file."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def with_class(self, name: str) -> list[dict[str, str | None]]:
        return [found for _, found in self.tags if name in (found.get("class") or "").split()]


async def test_values_are_drawn_on_pictures_of_the_pages(bare: Waybill, bad: Path) -> None:
    ran = await bare("mapping", "try", bad, SIMON, "--html", "out.html")
    assert ran.code == 1
    page = Page(Path("out.html").read_text(encoding="utf-8"))
    images = [found for tag, found in page.tags if tag == "img"]
    assert len(images) == 1
    assert (images[0]["src"] or "").startswith("data:image/png;base64,iVBOR")
    assert len(page.with_class("box")) > 100
    assert len(page.with_class("finding")) == 2
    assert len([found for found in page.with_class("c-doubtful") if "box" in (found["class"] or "")]) >= 3
    ids = {found["id"] for _, found in page.tags if found.get("id")}
    links = {(found["href"] or "").removeprefix("#") for tag, found in page.tags if tag == "a"}
    assert links <= ids


async def test_the_file_asks_nobody_for_anything(bare: Waybill, good: Path) -> None:
    await bare("mapping", "try", good, SIMON, "--html", "out.html")
    text = Path("out.html").read_text(encoding="utf-8")
    page = Page(text)
    assert "default-src 'none'" in text
    assert not [tag for tag, _ in page.tags if tag in {"script", "link", "iframe", "object", "form", "base"}]
    assert not [found for _, found in page.tags for name in found if name.startswith("on")]
    addresses = [value for _, found in page.tags for name, value in found.items() if name in {"src", "href"}]
    assert {address[:5] if address and address[0] == "d" else (address or "")[:1] for address in addresses} == {
        "data:",
        "#",
    }
    assert "url(" not in text
    assert "@import" not in text


@pytest.fixture
def evil(tmp_path: Path) -> tuple[Path, Path]:
    """A document and a mapping whose every word is hostile."""
    path = tmp_path / "evil.pdf"
    canvas = Canvas(str(path), pagesize=(595, 842))
    canvas.drawString(50, 800, "Name: <script>alert(1)</script>&lt;\x1b[2J [red]x[/red] \"'>")
    canvas.save()
    mapping = {
        "format": 1,
        "name": "evil_v1",
        "title": "<b>\x1b]0;owned\x07[bold]evil\u202e",
        "fields": {"name": {"label": "Name"}, "total": {"label": "<i>\x1b[31m", "required": True}},
        "checks": {"c": {"expect": "name == 'x'", "message": "<u>\x1b[2J{name}"}},
    }
    (tmp_path / "evil.json").write_text(json.dumps(mapping))
    return path, tmp_path / "evil.json"


async def test_nothing_in_a_document_or_a_mapping_acts_on_the_terminal(bare: Waybill, evil: tuple[Path, Path]) -> None:
    for columns in ("400", "60"):
        ran = await bare("mapping", "try", *evil, COLUMNS=columns)
        assert ran.code == 1
        assert_harmless(ran.out + ran.err)
    shown = await bare("mapping", "show", evil[1])
    assert_harmless(shown.out + shown.err)


async def test_nor_in_the_browser(bare: Waybill, evil: tuple[Path, Path]) -> None:
    await bare("mapping", "try", *evil, "--html", "out.html")
    text = Path("out.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert not [tag for tag, _ in Page(text).tags if tag in {"script", "u"}]


def _on_its_side(path: Path) -> None:
    canvas = Canvas(str(path), pagesize=(842, 595))
    canvas.rotate(90)
    canvas.drawString(50, -60, "Total: 12.50")
    canvas.save()


def _said_to_be_turned(path: Path) -> None:
    canvas = Canvas(str(path), pagesize=(595, 842))
    canvas.setPageRotation(90)  # which also makes reportlab print on 842 by 595
    canvas.drawString(50, 595 - 60, "Total: 12.50")
    canvas.save()


@pytest.mark.parametrize(("draw", "upright"), [(_on_its_side, True), (_said_to_be_turned, False)])
async def test_pages_are_drawn_as_they_are_read(
    bare: Waybill, tmp_path: Path, draw: Callable[[Path], None], upright: bool
) -> None:
    """A page whose text stands on its side is turned, and its boxes with it."""
    draw(tmp_path / "turned.pdf")
    (tmp_path / "m.json").write_text(
        json.dumps(
            {"format": 1, "name": "m_v1", "title": "M", "fields": {"total": {"type": "decimal", "label": "Total"}}}
        )
    )
    ran = await bare("mapping", "try", "turned.pdf", "m.json", "--html", "out.html")
    assert ran.code == 0
    page = Page(Path("out.html").read_text(encoding="utf-8"))
    [image] = [found for tag, found in page.tags if tag == "img"]
    assert (int(image["width"] or 0) < int(image["height"] or 0)) is upright
    [box] = page.with_class("box")
    place = dict(re.findall(r"--(\w):([0-9.]+)", box["style"] or ""))
    assert float(place["l"]) == pytest.approx(50 + 30, abs=8)
    assert float(place["b"]) < 80


def test_a_terminal_sees_colours(good: Path, tmp_path: Path) -> None:
    seen = on_a_terminal("", tmp_path, "mapping", "try", str(good), SIMON, columns=80)
    assert "\x1b[1;32mConverted.\x1b[0m" in seen
    assert_harmless(COLOURS.sub("", seen))


async def test_without_a_mapping_the_document_chooses_one(bare: Waybill, good: Path) -> None:
    ran = await bare("mapping", "try", good, COLUMNS="80")
    assert (ran.code, ran.err) == (0, "")
    assert ran.lines[0].split() == ["SCORE", "NAME"]
    assert ran.lines[1].split() == ["18", SIMON, "chosen"]
    assert any(line.split()[:2] == ["0", "oyo_v1"] and "lacks “PAYMENT RECEIPT”" in line for line in ran.lines)
    assert "needs an embedded invoice" in ran.out
    named = await bare("mapping", "try", good, SIMON, COLUMNS="80")
    report = ran.lines[ran.lines.index("") + 1 :]
    assert report[: report.index("Time")] == named.lines[: named.lines.index("Time")]
    found = (await bare("mapping", "try", good, "auto", "--json")).json
    assert found["ranking"][0] == {
        "name": SIMON,
        "title": "PT Simon invoice to Coretax e-Faktur",
        "score": 18,
        "fits": True,
        "missing": [],
        "unwanted": [],
    }
    assert found["mapping"]["name"] == SIMON


async def test_a_mapping_of_ones_own_takes_part(bare: Waybill, good: Path, tmp_path: Path) -> None:
    mine = {"format": 1, "name": "mine_v1", "title": "Mine", "recognise": {"all": ["PT SIMON", "INVOICE", "NPWP"]}}
    (tmp_path / "mine.json").write_text(json.dumps(mine))
    tied = await bare("mapping", "try", good, "--with", "mine.json", COLUMNS="100")
    assert tied.code == 1
    assert [line.split()[1] for line in tied.lines[1:3]] == ["mine_v1", SIMON]
    assert "recognise this document equally well" in tied.err
    refused = (await bare("mapping", "try", good, "--with", "mine.json", "--json")).json
    assert (refused["recognised"], refused["findings"][0]["key"]) == (False, "recognition.tie")
    assert (await bare("mapping", "try", good, SIMON, "--with", "mine.json")).code == 2


async def test_an_e_invoice_chooses_without_being_in_a_pdf(bare: Waybill, tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text("<?xml version='1.0'?><a/>")
    ran = await bare("mapping", "try", "a.xml", COLUMNS="80")
    assert ran.code == 1
    assert ran.lines[1].split()[1:] == ["en16931_cii", "chosen"]
    assert "needs an embedded invoice" not in ran.out
    assert "is not an invoice by EN 16931" in " ".join(ran.out.split())


@pytest.mark.parametrize(
    ("content", "sentence"), [("hello", "Only PDFs and e-invoices"), ("%PDF-1.7", "The PDF is damaged")]
)
async def test_a_file_that_is_no_pdf_cannot_choose(bare: Waybill, tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "text.pdf").write_text(content)
    ran = await bare("mapping", "try", "text.pdf")
    assert ran.code == 1
    assert sentence in ran.err

"""Findings and names in the reader's language: English and Indonesian have the same sentences and facts."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from documents.test_checks import extracted, mapping
from support.invoices import LAYOUTS, make_invoice
from support.invoices.tamper import missing_line, unknown_unit, without_buyer_npwp, wrong_carry_over
from support.pages import page, table
from support.records import pt_simon_loaded, read_invoice, read_page, record_of
from waybill_documents.checks import check
from waybill_documents.corrections import revise
from waybill_documents.document_reader import read_pdf
from waybill_documents.faults import FaultCode, Finding, MappingFault
from waybill_documents.mapping.loader import parse
from waybill_documents.messages import LANGUAGES, DocumentMessage, Shown, describe, tell
from waybill_documents.messages.sentences import FORMS, Placeholder, entries, sections
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.reading import Reading
from waybill_documents.stages import Stages

LOADED = pt_simon_loaded()


def told(reading: Reading) -> list[str]:
    for finding in reading.findings:
        assert tell(finding, "en", LOADED) == finding.message
        as_json = json.loads(json.dumps(finding.to_json()))
        assert tell(as_json, "id", LOADED) == tell(finding, "id", LOADED)
    return [tell(finding, "id", LOADED) for finding in reading.findings]


@pytest.mark.parametrize(
    ("path", "english", "indonesian"),
    [
        ("number", "Invoice number", "Nomor faktur"),
        ("lines", "Lines", "Rincian barang/jasa"),
        ("lines[3].amount", "Amount", "Jumlah"),
        ("lines[*].amount", "Amount", "Jumlah"),
        ("lines.amount", "Amount", "Jumlah"),
        ("tables.lines.columns.amount", "Amount", "Jumlah"),
        ("tables.lines.computed.tax_base", "Tax base (DPP)", "DPP"),
        ("fields.buyer_npwp", "Buyer's NPWP", "NPWP pembeli"),
        ("computed.buyer_tin", "Buyer's TIN (16 digits)", "NPWP pembeli (16 angka)"),
        ("checks.carried_over", "Sums carried over", "Jumlah pindahan"),
        ("lines[3].no_such_name", "No such name", "No such name"),
    ],
)
def test_values_are_called_as_the_mapping_calls_them(path: str, english: str, indonesian: str) -> None:
    assert describe(LOADED, path, "en") == english
    assert describe(LOADED, path, "id") == indonesian


def test_the_shipped_invoice_has_a_title_for_everything_in_both_languages() -> None:
    made = LOADED.mapping
    lines = made.tables["lines"]
    everything = {*made.fields, *made.tables, *made.computed, *(f"checks.{name}" for name in made.checks)}
    everything |= {f"lines.{name}" for name in (*lines.columns, *lines.computed)}
    assert made.titles.keys() == everything
    assert all(title.keys() == {"en", "id"} for title in made.titles.values())


def test_a_title_of_nothing_is_a_mistake_in_the_mapping() -> None:
    rules: dict[str, Any] = {"format": 1, "name": "a_v1", "title": "A", "fields": {"x": {"constant": "1"}}}
    assert parse(json.dumps({**rules, "titles": {"x": "An X"}}).encode()).titles == {"x": {"en": "An X"}}
    with pytest.raises(MappingFault, match="nothing with this name"):
        parse(json.dumps({**rules, "titles": {"y": "A Y"}}).encode())
    with pytest.raises(MappingFault, match="a title belongs to a name"):
        parse(json.dumps({**rules, "titles": {"x[0]": "A Y"}}).encode())


PACKAGES = (
    "libs/documents/src/waybill_documents",
    "services/gateway/src/waybill_gateway",
    "pipelines/convert/src/waybill_convert",
)


def calls_of_message() -> Iterator[tuple[str, ast.Call]]:
    """Every place in our code that makes a message, with its file and line."""
    root = Path(__file__).resolve().parents[2]
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "DocumentMessage":
                    yield f"{file.relative_to(root)}:{node.lineno}", node


def keys_in_code() -> dict[str, list[set[str]]]:
    """The keys that can arise, each with the parameters of every place that makes it."""
    found: dict[str, list[set[str]]] = {}
    for where, call in calls_of_message():
        if "messages/message.py" in where:
            continue  # `DocumentMessage` itself copies messages
        assert call.args, where
        assert isinstance(call.args[0], ast.Constant), f"{where}: the key must be written out to be found here"
        found.setdefault(str(call.args[0].value), []).append({keyword.arg or "" for keyword in call.keywords})
    return found


def placeholders(language: str, key: str) -> list[Placeholder]:
    entry = entries(language)[key]
    texts = [entry] if isinstance(entry, str) else list(entry.values())
    parts = [part for text in texts for _, section in sections(text) for part in section]
    return [part for part in parts if isinstance(part, Placeholder)]


ADDED_LATER = {
    "check.": {"check", "line", "expression", "left", "right", "after", "found"},
    "en16931.": {"left", "right"},
    "field.": {"cell"},
    "table.": {"cell"},
    "xml.": {"schema", "line", "element"},
    "mapping.unknown_": {"name", "meant"},
}
"""Parameters that `DocumentMessage.adding` gives, away from the place of the key."""


def test_every_key_that_can_arise_is_in_every_catalogue_and_no_other() -> None:
    arising = set(keys_in_code())
    assert len(arising) > 300
    for language in LANGUAGES:
        assert set(entries(language)) == arising, language


def test_the_sentences_of_a_key_use_only_parameters_that_the_code_gives() -> None:
    for key, places in keys_in_code().items():
        later = {name for prefix, names in ADDED_LATER.items() if key.startswith(prefix) for name in names}
        for language in LANGUAGES:
            for given in places:
                for part in placeholders(language, key):
                    known = part.name in given | later or (part.optional and part.name == "line")
                    assert known, f"{language}: {key} uses {part.name}, which is not given everywhere"


def test_the_languages_say_the_same() -> None:
    """Indonesian leaves out some parameters that only English needs, and the other way round; never a value."""
    only_in_one = {
        "decimals", "line", "later_page", "page", "name", "schema", "most", "column",
    }  # fmt: skip
    for key in entries("en"):
        english, indonesian = ({part.name for part in placeholders(language, key)} for language in LANGUAGES)
        assert english ^ indonesian <= only_in_one, key


def test_forms_are_known() -> None:
    for language in LANGUAGES:
        for key in entries(language):
            assert {part.form for part in placeholders(language, key)} <= {"", *FORMS}, key


def test_braces_and_brackets_can_be_written() -> None:
    assert DocumentMessage("mapping.type.object").english == "an object in { }"
    assert DocumentMessage("mapping.type.list").in_language("id") == "daftar dalam [ ]"


def test_a_part_in_brackets_is_left_out_without_its_parameters() -> None:
    assert DocumentMessage("lookup.unknown", name="unit", text="x").english == "there is no unit for 'x'"
    assert (
        DocumentMessage("lookup.unknown", name="unit", text="x", line=3).english == "line 3: there is no unit for 'x'"
    )


def test_one_and_several() -> None:
    assert DocumentMessage("pdf.no_such_page", count=1, page=2).english == "The PDF has 1 page; there is no page 2."
    assert DocumentMessage("pdf.no_such_page", count=2000, page=3000).in_language("id") == (
        "PDF ini memiliki 2.000 halaman; tidak ada halaman 3.000."
    )


def test_a_message_is_plain_json() -> None:
    inner = DocumentMessage("text.not_a_date", text="x", example=date(2025, 8, 7))
    message = DocumentMessage("field.unreadable", field="issued", why=inner, amount=Shown("1.50", "1,50"), nothing=None)
    assert (
        json.loads(json.dumps(message.params))
        == message.params
        == {
            "field": "issued",
            "why": {"key": "text.not_a_date", "params": {"text": "x", "example": "2025-08-07"}},
            "amount": "1.50",
            "shown": {"amount": "1,50"},
        }
    )


def test_a_finding_as_json_has_its_key_its_parameters_and_the_english_sentence() -> None:
    finding = Finding(FaultCode.UNREADABLE, DocumentMessage("pdf.page_damaged", page=3), page=3)
    assert finding.to_json() == {
        "code": "unreadable",
        "message": "Page 3 of the PDF is damaged.",
        "key": "pdf.page_damaged",
        "params": {"page": 3},
        "page": 3,
    }
    assert tell(finding.to_json(), "id") == "Halaman 3 PDF ini rusak."


def test_a_finding_without_a_key_is_told_in_english() -> None:
    """Release 0.1.0 stored findings without keys."""
    assert tell({"message": "who knows"}, "id") == "who knows"
    assert tell({"message": "who knows", "params": {"kind": "sum"}, "code": "check_failed"}, "id") == "who knows"
    assert tell({"message": "who knows", "params": ["x"], "code": 7}, "id") == "who knows"


def test_a_key_that_a_language_does_not_have_is_told_in_english() -> None:
    assert tell({"message": "who knows", "key": "from.the_future"}, "id") == "who knows"
    assert tell({"message": "x", "key": "pdf.no_pages"}, "fr") == "x"
    assert DocumentMessage("pdf.no_pages").in_language("fr") == "The PDF has no pages."


def test_a_record_cannot_nest_messages_without_end() -> None:
    nested: dict[str, Any] = {"key": "field.unreadable", "params": {"field": "x"}}
    for _ in range(100):
        nested = {"key": "field.unreadable", "params": {"field": "x", "why": nested}}
    assert tell({"message": "x", **nested}, "id").startswith("x: x: ")


def test_the_mappings_own_words_go_first() -> None:
    own = {"en": "no", "id": "tidak"}
    finding = Finding(FaultCode.CHECK_FAILED, DocumentMessage("check.missing", missing=["net"], messages=own))
    assert (tell(finding, "id"), tell(finding, "en")) == ("tidak", "no")
    assert tell({"message": "no", "params": {"messages": own}}, "id") == "tidak"
    several = DocumentMessage("document.first_finding", first=finding.says, count=2)
    assert several.in_language("id") == "tidak (dan 2 temuan lain)"


def test_what_is_wrong_with_an_invoice(tmp_path: Path) -> None:
    assert told(read_invoice(without_buyer_npwp(make_invoice(4, 6)), LAYOUTS[0], tmp_path)) == [
        "NPWP pembeli tidak ditemukan: tidak ada tulisan “NPWP” setelah “Kepada”."
    ]
    assert told(read_invoice(unknown_unit(make_invoice(7, 4), 2), LAYOUTS[0], tmp_path)) == [
        "baris 2: “pikul” tidak ada dalam daftar satuan Coretax"
    ]
    assert told(read_invoice(missing_line(make_invoice(7, 4), 2), LAYOUTS[0], tmp_path)) == [
        "baris 2: nomor urut melompat dari 1 ke 3"
    ]
    path = tmp_path / "carried.pdf"
    path.write_bytes(wrong_carry_over(make_invoice(7, 60), LAYOUTS[0], brought=Decimal(0)))
    said = told(read_pdf(path, LOADED, PdfLimits(), Stages(lambda: 0.0)))
    assert len(said) == 2
    assert re.fullmatch(r"halaman 1 memindahkan [0-9.,]+, sedangkan jumlah baris sampai di situ [0-9.,]+", said[0])
    assert re.fullmatch(r"halaman 2 menerima pindahan [0-9.,]+, padahal halaman 1 memindahkan [0-9.,]+", said[1])


MAPPING: dict[str, Any] = {
    "format": 1,
    "name": "test_v1",
    "title": "Test",
    "locale": {"base": "id"},
    "fields": {
        "number": {"label": "Nomor", "required": True},
        "issued": {"label": ["Tanggal", "Tgl"], "type": "date", "required": True},
        "rate": {"label": "Kurs", "type": "decimal", "decimals": 2},
        "count": {"label": "Banyak", "type": "integer", "required": True},
        "mark": {"pattern": "ZZZ", "required": True},
    },
    "tables": {
        "lines": {
            "row": {"begins": "no"},
            "columns": {
                "no": {"header": "No", "type": "integer", "required": True},
                "name": {"header": "Nama", "required": True},
                "qty": {"header": ["Qty", "Kuantitas"], "type": "decimal", "required": True},
            },
            "end": "Selesai",
        }
    },
}


def test_what_reading_finds_wrong() -> None:
    head = ((30, 20, "Nomor:"), (30, 40, "Kurs: 1,234"), (30, 60, "Banyak: 1,5"))
    rows = [f"{number:<4} Pena        zwei" for number in range(2, 24)]
    body = table(["No   Nama        Qty", "1                12", *rows, "     ganjil      3", "Selesai"])
    assert told(read_page(MAPPING, page(*head, *body)))[:7] == [
        "Nomor faktur tidak ditemukan: tidak ada isinya di samping “Nomor” di halaman 1.",
        "Issued tidak ditemukan: tidak ada halaman yang memuat tulisan “Tanggal” atau “Tgl”.",
        "count: “1,5” bukan bilangan bulat",
        "Mark tidak ditemukan.",
        "tulisan di bawah baris 23 di halaman 1 tidak dapat dipahami: “ganjil 3”",
        "baris 1: nama barang/jasa tidak ada",
        "baris 2: jumlah barang: “zwei” bukan angka, contohnya 1.234,56",
    ]
    last = told(read_page(MAPPING, page(*head, *body)))[-2:]
    assert last == [
        "jumlah barang tidak dapat dibaca di 2 baris lagi",
        "rate: “1,234” terlalu rinci, paling banyak 2 angka di belakang koma",
    ]


def test_tables_and_columns_that_are_not_there() -> None:
    head = ((30, 20, "Nomor: A"), (30, 40, "Tanggal: 7 Agustus 2025"), (30, 60, "Banyak: 1"), (30, 80, "ZZZ"))
    assert told(read_page(MAPPING, page(*head))) == [
        "Tabel “rincian barang/jasa” tidak ditemukan: tidak ada halaman yang memuat judul kolom beserta baris-barisnya."
    ]
    lines = table(["No   Nama", "1    Map"])
    assert told(read_page(MAPPING, page(*head, *lines)))[0] == (
        "Tabel “rincian barang/jasa” tidak memiliki kolom “Qty” atau “Kuantitas” di halaman 1."
    )


def test_why_what_was_typed_is_refused(tmp_path: Path) -> None:
    record = record_of(read_invoice(make_invoice(3, 2), LAYOUTS[0], tmp_path))
    typed = {
        "date": ("31 Februari 2025", "tanggal faktur: “31 Februari 2025” bukan tanggal, contohnya 7 Agustus 2025"),
        "lines[1].price": (
            "1,005",
            "baris 2: harga satuan: “1,005” terlalu rinci, paling banyak 2 angka di belakang koma",
        ),
        "lines[0].name": ("\x07", "baris 1: nama barang/jasa: ada karakter yang tidak dapat ditulis"),
        "lines[0].vat": ("1", "PPN dihitung dari nilai lain; perbaiki nilai asalnya"),
        "seller_npwp": ("x", "NPWP penjual: “x” tidak mengandung angka"),
        "nothing": ("1", "nothing: tidak ada nilai dengan nama ini di dokumen"),
    }
    refused = revise(LOADED, record, [(path, text) for path, (text, _) in typed.items()]).refused
    assert [tell(each, "id", LOADED) for each in refused] == [said for _, said in typed.values()]
    emptied = revise(LOADED, record, [("number", "")]).reading
    assert told(emptied) == ["Nomor faktur wajib diisi."]


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ("sum(lines.amount) == subtotal", "jumlah amount adalah 112.500,00, di faktur tertulis subtotal 112.500,50"),
        ("subtotal == 5", "subtotal adalah 112.500,50, seharusnya 5"),
        ("subtotal != subtotal", "subtotal adalah 112.500,50, seharusnya bukan subtotal, yaitu 112.500,50"),
        ("subtotal <= row_count", "subtotal adalah 112.500,50, seharusnya tidak lebih dari row count, yaitu 4"),
        ("3 == row_count", "row count adalah 4, tidak sesuai dengan 3"),
        ("subtotal + 1 == row_count + 2", "112.500,50 + 1 adalah 112.501,50, tetapi 4 + 2 adalah 6"),
        ("count(lines) == row_count", "banyaknya lines adalah 3, di faktur tertulis row count 4"),
        ("first(lines.no) == row_count", "no pertama adalah 1, di faktur tertulis row count 4"),
        (
            "max(lines.price) * 2 == subtotal",
            "price terbesar × 2 adalah 25.000,00, di faktur tertulis subtotal 112.500,50",
        ),
        ("not empty(buyer)", "buyer tidak ada"),
        ("unique(lines.quantity)", "baris 2: quantity 3 sudah ada di baris 1"),
        ("carried('lines')", "halaman 1 tidak mencantumkan jumlah pindahan, padahal tabelnya berlanjut"),
        ("row_count == 1 or row_count == 2", "a sum tidak terpenuhi: row_count == 1 or row_count == 2"),
    ],
)
def test_why_a_check_does_not_hold(expect: str, said: str) -> None:
    (result,) = check(mapping(a_sum={"expect": expect}), extracted(3, subtotal=Decimal("112500.50"), row_count=4), {})
    first = result.findings[0]
    assert tell(first, "en") == first.message
    assert tell(first, "id") == said


def test_in_a_row_the_line_goes_first() -> None:
    values = extracted(30)
    for row in values.tables["lines"]:
        row["amount"].value = Decimal(1)
    (result,) = check(mapping(totals={"each": "lines", "expect": "quantity * price == amount"}), values, {})
    assert tell(result.findings[1], "id") == "baris 2: 3 × 12.500,00 adalah 37.500,00, di faktur tertulis amount 1"
    assert tell(result.findings[-1], "id") == "totals: masih ada 10 temuan serupa"


def test_telling_a_finding_needs_no_heavy_library() -> None:
    """The pages of the queue tell findings too, in a process that converts nothing."""
    program = (
        "import sys; from waybill_documents.messages import tell\n"
        "print(tell({'message': '', 'key': 'pdf.no_pages'}, 'id'))\n"
        "print(sorted({'lxml', 'pydantic', 'pypdfium2', 're2'} & sys.modules.keys()))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout == "PDF ini tidak memiliki halaman.\n[]\n"

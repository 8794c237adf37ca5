"""Every untrusted file is either read or refused with a message, in bounded time and memory."""

from __future__ import annotations

import io
import random
import re
import resource
import struct
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import docx
import pytest
from docx.oxml.ns import nsdecls

from support.workbooks import packed, save, sheet, sheet_xml, unpacked, workbook_parts
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.office import OfficeLimits, detect, read, read_excel, read_text, read_word

SMALL = OfficeLimits(unpacked_bytes=2**20, cells=1000, rows=500, sheets=5, characters=50_000, elements=5000, parts=50)


def letter() -> bytes:
    document = docx.Document()
    document.add_heading("Letter", 1)
    document.add_paragraph("One", style="List Number")
    table = document.add_table(rows=2, cols=2)
    table.cell(0, 0).merge(table.cell(0, 1)).text = "merged"
    document.sections[0].header.paragraphs[0].text = "Head"
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def book() -> bytes:
    strings = "<sst xmlns='http://schemas.openxmlformats.org/spreadsheetml/2006/main'><si><t>shared</t></si></sst>"
    rows = sheet([["a", "b", None], [1, (45876, "date"), "#N/A"], [True, 2.5, "x"]], merged=["A1:B1"])
    shared = sheet_xml('<row r="1"><c r="A1" t="s"><v>0</v></c></row>')
    return packed(workbook_parts({"One": rows, "Two": shared}, strings=strings))


def written(folder: Path, data: bytes) -> Path:
    path = folder / "file"
    path.write_bytes(data)
    return path


def fault_of(path: Path, limits: OfficeLimits | None = None) -> DocumentRejected:
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DocumentRejected) as found:
        read(path, limits)
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # KB, and only ever grows
    assert found.value.message.endswith(".")
    return found.value


def word_with(body: str) -> dict[str, str | bytes]:
    parts = unpacked(letter())
    parts["word/document.xml"] = f"<w:document {nsdecls('w')}><w:body>{body}</w:body></w:document>"
    return parts


def excel_with(body: str, **more: str) -> dict[str, str | bytes]:
    return workbook_parts({"Sheet": sheet_xml(body)}, **more)


def cell_at(place: str, value: int = 1) -> str:
    number = place.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return f'<row r="{number}"><c r="{place}"><v>{value}</v></c></row>'


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)

FAULTS: dict[str, tuple[FaultCode, Callable[[], dict[str, str | bytes]]]] = {
    "word that unpacks to 100 MB": (FaultCode.TOO_MUCH_TEXT, lambda: word_with("<w:p/>" + " " * 100_000_000)),
    "excel that unpacks to 100 MB": (FaultCode.TOO_MUCH_TEXT, lambda: excel_with(" " * 100_000_000)),
    "unpacks to a thousand times its size": (FaultCode.TOO_MUCH_TEXT, lambda: word_with(" " * 20_000_000)),
    "ten million elements": (FaultCode.TOO_MUCH_TEXT, lambda: word_with("<w:p/>" * 5_000_000)),
    "deeper than any document": (FaultCode.UNREADABLE, lambda: word_with("<w:p>" * 5000 + "</w:p>" * 5000)),
    "entities in word": (
        FaultCode.UNREADABLE,
        lambda: {**word_with(""), "word/document.xml": ENTITIES + "<w:document>&i;</w:document>"},
    ),
    "entities in excel": (
        FaultCode.UNREADABLE,
        lambda: {**excel_with(""), "xl/workbook.xml": ENTITIES + "<workbook>&i;</workbook>"},
    ),
    "external entity": (
        FaultCode.UNREADABLE,
        lambda: {
            **word_with(""),
            "word/document.xml": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>',
        },
    ),
    "another encoding": (
        FaultCode.UNREADABLE,
        lambda: {**excel_with(""), "xl/worksheets/sheet1.xml": sheet_xml(cell_at("A1")).encode("utf-16")},
    ),
    "an encoding that hides markup": (
        FaultCode.UNREADABLE,
        lambda: {**word_with(""), "word/document.xml": '<?xml version="1.0" encoding="UTF-7"?><w:document/>'},
    ),
    "opposite corners": (FaultCode.TOO_MANY_ROWS, lambda: excel_with(cell_at("A1") + cell_at("XFD1048576"))),
    "a wide sheet": (FaultCode.TOO_MUCH_TEXT, lambda: excel_with(cell_at("A1") + cell_at("XFD100000"))),
    "a cell that contradicts its row": (
        FaultCode.TOO_MANY_ROWS,
        lambda: excel_with(cell_at("A1") + '<row r="2"><c r="A1048576"><v>1</v></c></row>'),
    ),
    "a row beyond the end": (
        FaultCode.TOO_MANY_ROWS,
        lambda: excel_with(cell_at("A1") + '<row r="9999999"><c><v>1</v></c></row>'),
    ),
    "a row that is none": (FaultCode.UNREADABLE, lambda: excel_with('<row r="-1"><c><v>1</v></c></row>')),
    "a cell that is none": (FaultCode.UNREADABLE, lambda: excel_with('<row r="1"><c r="A"><v>1</v></c></row>')),
    "prefixed cells in opposite corners": (
        FaultCode.TOO_MANY_ROWS,
        lambda: excel_with(
            '<x:row xmlns:x="x" r="1"><x:c r="A1"><x:v>1</x:v></x:c><x:c r="XFD1048576"><x:v>1</x:v></x:c></x:row>'
        ),
    ),
    "a million copies of a long text": (
        FaultCode.TOO_MUCH_TEXT,
        lambda: excel_with(
            "".join(f'<row r="{n}"><c r="A{n}" t="s"><v>0</v></c></row>' for n in range(1, 50_000)),
            strings="<sst><si><t>" + "long " * 6000 + "</t></si></sst>",
        ),
    ),
    "sheets that share a part": (
        FaultCode.UNREADABLE,
        lambda: {
            **(parts := workbook_parts({f"S{n}": sheet([["x"]]) for n in range(3)})),
            "xl/_rels/workbook.xml.rels": str(parts["xl/_rels/workbook.xml.rels"]).replace(
                "sheet2.xml", "./sheet1.xml"
            ),
        },
    ),
    "a sheet that is missing": (
        FaultCode.UNREADABLE,
        lambda: {k: v for k, v in excel_with("").items() if "sheet1" not in k},
    ),
    "no content types": (
        FaultCode.UNREADABLE,
        lambda: {k: v for k, v in word_with("").items() if k != "[Content_Types].xml"},
    ),
    "no relations": (FaultCode.UNREADABLE, lambda: {k: v for k, v in word_with("").items() if k != "_rels/.rels"}),
    "no body": (FaultCode.UNREADABLE, lambda: {**word_with(""), "word/document.xml": f"<w:document {nsdecls('w')}/>"}),
    "broken xml": (FaultCode.UNREADABLE, lambda: word_with("<w:p>")),
    "a part for every bolt": (
        FaultCode.TOO_MUCH_TEXT,
        lambda: {**word_with(""), **{f"x/{n}": "" for n in range(10_001)}},
    ),
    "a table wider than word can make": (
        FaultCode.UNREADABLE,
        lambda: word_with(f"<w:tbl><w:tr>{'<w:tc/>' * 300}</w:tr></w:tbl>"),
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_hostile_package_is_a_fault(tmp_path: Path, name: str) -> None:
    code, parts = FAULTS[name]
    assert fault_of(save(tmp_path / "file", parts())).code == code


def test_a_directory_that_lies_about_sizes_is_not_believed(tmp_path: Path) -> None:
    for content in (word_with("<w:p/>" + " " * 50_000_000), excel_with(" " * 50_000_000)):
        data = bytearray(packed(content))
        large = next(one for one in zipfile.ZipFile(io.BytesIO(data)).infolist() if one.file_size > 10**7)
        lie, at = struct.pack("<I", 1000), 0
        while (at := data.find(struct.pack("<I", large.file_size), at)) >= 0:
            data[at : at + 4] = lie
        assert fault_of(written(tmp_path, bytes(data))).code == FaultCode.UNREADABLE


def test_names_that_leave_the_folder_are_not_followed(tmp_path: Path) -> None:
    parts = {**unpacked(letter()), "../../evil.xml": "<x/>", "/etc/evil.xml": "<x/>", "a\\..\\evil.xml": "<x/>"}
    assert "merged" in read(save(tmp_path / "file", parts)).pages[0].text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (lambda: excel_with("".join(cell_at(f"A{n}") for n in range(1, 600))), FaultCode.TOO_MANY_ROWS),
        (lambda: workbook_parts({str(n): sheet([[n] * 400]) for n in range(4)}), FaultCode.TOO_MUCH_TEXT),
        (lambda: workbook_parts({str(n): sheet([[n]]) for n in range(6)}), FaultCode.TOO_MANY_PAGES),
        (lambda: workbook_parts({"A": sheet([["long text " * 1000] * 4])}), FaultCode.TOO_MUCH_TEXT),
        (lambda: word_with(f"<w:p><w:r><w:t>{'long ' * 12_000}</w:t></w:r></w:p>"), FaultCode.TOO_MUCH_TEXT),
        (lambda: word_with("<w:p/>" * 6000), FaultCode.TOO_MUCH_TEXT),
    ],
)
def test_every_limit_holds(tmp_path: Path, content: Callable[[], dict[str, str | bytes]], code: FaultCode) -> None:
    assert fault_of(save(tmp_path / "file", content()), SMALL).code == code


def test_what_is_only_formatted_does_not_count(tmp_path: Path) -> None:
    body = cell_at("A1") + cell_at("B1") + '<row r="1048576"><c r="XFD1048576" s="1"/></row>'
    assert read(save(tmp_path / "file", excel_with(body))).pages[0].text == "1\t1"


def test_nested_tables_cannot_multiply_their_text(tmp_path: Path) -> None:
    inner = "<w:p><w:r><w:t>" + "text " * 2000 + "</w:t></w:r></w:p>"
    for _ in range(40):
        inner = f"<w:tbl><w:tr><w:tc>{inner}</w:tc></w:tr></w:tbl>"
    assert fault_of(save(tmp_path / "file", word_with(inner)), SMALL).code == FaultCode.TOO_MUCH_TEXT


@pytest.mark.parametrize(("make", "reader"), [(letter, read_word), (book, read_excel)])
def test_a_file_cut_anywhere_is_unreadable(
    tmp_path: Path, make: Callable[[], bytes], reader: Callable[[Path], object]
) -> None:
    whole = make()
    for length in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        path = written(tmp_path, whole[:length])
        with pytest.raises(DocumentRejected):
            read(path)
        with pytest.raises(DocumentRejected):
            reader(path)


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.randrange(256)
            case 1:
                del changed[at : at + rng.randint(1, 40)]
            case 2:
                changed[at:at] = changed[rng.randrange(len(changed)) :][: rng.randint(1, 40)]
            case _:
                changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def read_any(path: Path) -> None:
    for reader in (read, read_word, read_excel, read_text):
        try:
            document = reader(path)
        except DocumentRejected as fault:
            assert fault.message  # noqa: PT017 - the other outcome is a document
        else:
            document.to_json()


@pytest.mark.parametrize("make", [letter, book])
def test_mutated_files_are_read_or_refused(tmp_path: Path, make: Callable[[], bytes]) -> None:
    data, rng = make(), random.Random(7)
    for _ in range(150):
        path = written(tmp_path, mutated(data, rng))
        detect(path)
        read_any(path)


NUMBERS = [b"-1", b"0", b"4294967296", b"99999999999999999999", b"abc", b"", b"1e9", b"\xe2\x80\xae", b"A1:XFD1048576"]


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (letter, ["word/document.xml", "word/numbering.xml", "word/styles.xml", "[Content_Types].xml", "_rels/.rels"]),
        (book, ["xl/workbook.xml", "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml", "xl/styles.xml"]),
    ],
)
def test_mutated_xml_in_a_sound_package_is_read_or_refused(
    tmp_path: Path, make: Callable[[], bytes], names: list[str]
) -> None:
    sound, rng = unpacked(make()), random.Random(11)
    for _ in range(80):
        name = rng.choice(names)
        content = sound[name]
        assert isinstance(content, bytes)
        changed = _swapped(content, rng) if rng.random() < 0.7 else mutated(content, rng)
        read_any(save(tmp_path / "file", {**sound, name: changed}))


def _swapped(content: bytes, rng: random.Random) -> bytes:
    """Well-formed XML with a wrong value or element."""
    quotes = [quote.start() for quote in re.finditer(b'"', content)]
    if len(quotes) < 4 or rng.random() < 0.3:
        tags = content.split(b"<")
        rng.shuffle(some := tags[2 : 2 + rng.randint(2, 10)])
        return b"<".join(tags[:2] + some + tags[2 + len(some) :])
    at = rng.randrange(len(quotes) // 2) * 2
    return content[: quotes[at] + 1] + rng.choice(NUMBERS) + content[quotes[at + 1] :]


@pytest.mark.parametrize(
    ("kind", "stream", "code"),
    [
        ("protected", "EncryptedPackage", FaultCode.ENCRYPTED),
        ("doc", "WordDocument", FaultCode.UNREADABLE),
        ("xls", "Workbook", FaultCode.UNREADABLE),
    ],
)
def test_older_and_protected_files_get_a_sentence_of_their_own(
    tmp_path: Path, kind: str, stream: str, code: FaultCode
) -> None:
    entry = stream.encode("utf-16-le").ljust(128, b"\0")
    path = written(tmp_path, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".ljust(1024, b"\0") + entry)
    assert detect(path) == kind
    fault = fault_of(path)
    assert fault.code == code
    assert "password" in fault.message or "save it as" in fault.message
    with pytest.raises(DocumentRejected):
        read_word(path)


def test_the_corpus(shared_data: Path) -> None:
    hostile = shared_data / "hostile"
    expected = {
        "protectedFile.xlsx": ("protected", FaultCode.ENCRYPTED),
        "testWORD_protected_passtika.docx": ("protected", FaultCode.ENCRYPTED),
        "testWORD_truncated.docx": ("docx", FaultCode.UNREADABLE),
        "testZIP_corrupted_oom.zip": (None, FaultCode.UNREADABLE),
        "quine.gz": (None, FaultCode.UNREADABLE),
        "testPDF_protected.pdf": ("pdf", FaultCode.UNREADABLE),  # PDFs have a reader of their own
    }
    assert {path.name for path in hostile.iterdir()} == set(expected)
    for name, (kind, code) in expected.items():
        assert detect(hostile / name) == kind, name
        assert fault_of(hostile / name).code == code, name

"""What is filled in to a form is read like print, as it is seen and not as it is stored."""

from __future__ import annotations

from pathlib import Path

import pypdfium2
import pytest
from pypdfium2 import raw
from reportlab.pdfgen.canvas import Canvas

from support.bad_pdfs import one_page, stream, write
from support.pages import HEIGHT, WIDTH, drawn, extract_file, read_pages
from waybill_documents.mapping.model import Mapping
from waybill_documents.pdf.page_images import page_image
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.text_lines import lines_of

MAPPING = Mapping.model_validate(
    {
        "format": 1,
        "name": "test_v1",
        "title": "Test",
        "fields": {
            "number": {"label": "Invoice"},
            "total": {"type": "decimal", "label": "Total"},
            "terms": {"label": "Terms"},
            "paid": {"label": "Paid"},
            "open": {"label": "Open"},
            "ship": {"label": "By air"},
        },
    }
)


def form(canvas: Canvas) -> None:
    labels = ("Invoice:", "Total:", "Terms:", "Paid:", "Open:", "By air:")
    for number, label in enumerate(labels):
        canvas.drawString(40, HEIGHT - 100 - 30 * number, label)
    at = {label: int(HEIGHT) - 104 - 30 * number for number, label in enumerate(labels)}
    fields = canvas.acroForm
    fields.textfield(name="number", x=90, y=at["Invoice:"], width=120, height=16, value="INV 12/2025", fontSize=10)
    fields.textfield(name="total", x=90, y=at["Total:"], width=120, height=16, value="1,234.50", fontSize=10)
    terms = ["30 days", "60 days"]
    fields.choice(name="terms", x=90, y=at["Terms:"], width=120, height=16, value=terms[0], options=terms, fontSize=10)
    fields.checkbox(name="paid", x=90, y=at["Paid:"], size=12, checked=True)
    fields.checkbox(name="open", x=90, y=at["Open:"], size=12, checked=False)
    fields.radio(name="ship", value="air", selected=True, x=90, y=at["By air:"], size=12)
    fields.radio(name="ship", value="sea", selected=False, x=300, y=at["By air:"], size=12)


def values(path: Path) -> list[object]:
    return [field.value for field in extract_file(MAPPING, path).extracted.fields.values()]


def text(path: Path) -> list[str]:
    return [line.text for page in read_pages(path) for line in lines_of(page)]


def test_the_values_of_a_form_are_read(tmp_path: Path) -> None:
    path = drawn(tmp_path / "form.pdf", form)
    number, total, terms, paid, open_, ship = values(path)
    assert (number, str(total), terms, paid, open_, ship) == ("INV 12/2025", "1234.50", "30 days", "☒", None, "☒")


def test_a_value_is_where_it_is_seen(tmp_path: Path) -> None:
    path = drawn(tmp_path / "form.pdf", form)
    (place,) = extract_file(MAPPING, path).extracted.fields["number"].places
    left, top, right, bottom = place.box
    assert 90 <= left < right <= 210
    assert 104 - 16 <= top < bottom <= 106


@pytest.mark.parametrize("rotation", [90, 180, 270])
def test_the_form_of_a_turned_page(rotation: int, tmp_path: Path) -> None:
    def turned(canvas: Canvas) -> None:
        canvas.setPageRotation(rotation)
        form(canvas)

    # reportlab swaps the sides of a page that is turned.
    size = (WIDTH, HEIGHT) if rotation == 180 else (HEIGHT, WIDTH)
    path = drawn(tmp_path / "form.pdf", turned, size=size)
    assert values(path)[0] == "INV 12/2025"


def test_a_flattened_form_is_read_as_before(tmp_path: Path) -> None:
    path = drawn(tmp_path / "form.pdf", form)
    document = pypdfium2.PdfDocument(path)
    page = document[0]
    assert raw.FPDFPage_Flatten(page.raw, raw.FLAT_NORMALDISPLAY) == raw.FLATTEN_SUCCESS
    page.close()
    document.save(tmp_path / "flat.pdf")
    document.close()
    assert values(tmp_path / "flat.pdf")[:3] == values(path)[:3]


def test_pages_without_a_field_beside_one_with_fields(tmp_path: Path) -> None:
    path = drawn(tmp_path / "form.pdf", lambda canvas: canvas.drawString(40, 700, "Page one"), form)
    assert [len(page.words) > 2 for page in read_pages(path)] == [False, True]


def document(folder: Path, *fields: bytes, acro: bytes = b"") -> Path:
    """A form written by hand; each field is the rest of its dictionary."""
    numbers = range(10, 10 + len(fields))
    references = b" ".join(b"%d 0 R" % number for number in numbers)
    objects = one_page(Annots=b"[" + references + b"]")
    objects[1] = (
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [" + references + b"] /DA (/F1 10 Tf 0 g)"
        b" /DR << /Font << /F1 5 0 R >> >> " + acro + b" >> >>"
    )
    for number, field in zip(numbers, fields, strict=True):
        y = 600 - 30 * (number - 10)
        objects[number] = (
            (
                b"<< /Type /Annot /Subtype /Widget /P 3 0 R /T (f%d) /Rect [100 %d 200 %d] /DA (/F1 10 Tf 0 g) "
                % (number, y, y + 16)
            )
            + field
            + b" >>"
        )
    objects[40] = stream(
        b"/Tx BMC BT /F1 10 Tf 0 g 2 4 Td (seen) Tj ET EMC",
        extra=b"/Type /XObject /Subtype /Form /BBox [0 0 100 16] /Resources << /Font << /F1 5 0 R >> >>",
    )
    path = folder / "form.pdf"
    path.write_bytes(write(objects))
    return path


@pytest.mark.parametrize("acro", [b"", b"/NeedAppearances true"])
def test_a_value_without_an_appearance_is_read(acro: bytes, tmp_path: Path) -> None:
    fields = [
        b"/FT /Tx /F 4 /V (INV-12 of 2025)",
        b"/FT /Ch /F 4 /Ff 131072 /Opt [(30 days) (60 days)] /V (30 days)",
        b"/FT /Btn /F 4 /V /Yes /AS /Yes",
    ]
    assert text(document(tmp_path, *fields, acro=acro))[1:] == ["INV-12 of 2025", "30 days", "☒"]


def test_the_appearance_is_read_and_not_the_value(tmp_path: Path) -> None:
    """Otherwise a person would see one invoice and we would read another."""
    assert text(document(tmp_path, b"/FT /Tx /F 4 /V (stored) /AP << /N 40 0 R >>"))[1:] == ["seen"]


@pytest.mark.parametrize("flags", [2, 32, 2 + 4, 32 + 4])
def test_a_field_that_is_not_shown_is_not_read(flags: int, tmp_path: Path) -> None:
    fields = [b"/FT /Tx /F %d /V (hidden)" % flags, b"/FT /Btn /F %d /V /Yes /AS /Yes" % flags]
    assert text(document(tmp_path, *fields)) == ["Hello from page one"]


@pytest.mark.parametrize(
    "field",
    [
        b"/FT /Tx /F 4 /V 12 0 R",
        b"/FT /Tx /F 4",
        b"/FT /Nothing /F 4 /V (x)",
        b"/FT /Btn /F 4 /V 5 /AS 7",
        b"/FT /Tx /F 4 /V (x) /AP << /N 3 0 R >>",
        b"/FT /Ch /F 4 /V [(a) (b)] /Opt 5",
        b"/FT /Sig /F 4",
        b"/FT /Tx /F 4 /V (x) /Parent 10 0 R",
    ],
)
def test_a_damaged_field_does_not_keep_the_rest_from_being_read(field: bytes, tmp_path: Path) -> None:
    assert text(document(tmp_path, field))[0] == "Hello from page one"


def test_the_image_of_a_page_shows_what_is_read(tmp_path: Path) -> None:
    images = []
    for fields in ([b"/FT /Tx /F 4 /V (INV-12 of 2025)"], [b"/FT /Tx /F 2 /V (INV-12 of 2025)"]):
        with opened(document(tmp_path, *fields), PdfLimits()) as found:
            images.append(page_image(found, 1, 1.0, PdfLimits()))
    assert images[0] != images[1]

"""Words are read upright and where a person sees them, however the file draws them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfgen.canvas import Canvas

from support.pages import drawn, read_pages
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.geometry import Page, Word, cut, part
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.plain_document import PlainPage


def read(path: Path, *draw: Callable[[Canvas], None]) -> Page:
    return read_pages(drawn(path / "page.pdf", *draw))[0]


def texts(page: Page) -> list[str]:
    return [word.text for word in page.words]


def mapped(path: Path, *lines: str, meaning: dict[str, str]) -> Path:
    """A PDF with a font whose own encoding maps letters to other characters."""
    pairs = "\n".join(f"<{ord(key):02x}> <{value.encode('utf-16-be').hex()}>" for key, value in meaning.items())
    cmap = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
        "1 begincodespacerange <00> <ff> endcodespacerange\n"
        f"{len(meaning)} beginbfchar\n{pairs}\nendbfchar endcmap end end"
    )
    shown = "".join(f"1 0 0 1 50 {700 - 20 * number} Tm ({text}) Tj " for number, text in enumerate(lines))
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
        f"<</Length {len(shown) + 14}>>stream\nBT /F 10 Tf {shown}ET\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/ToUnicode 6 0 R>>",
        f"<</Length {len(cmap)}>>stream\n{cmap}\nendstream",
    ]
    body, places = "%PDF-1.4\n", []
    for number, each in enumerate(objects, start=1):
        places.append(f"{len(body):010} 00000 n \n")
        body += f"{number} 0 obj {each} endobj\n"
    xref = f"xref\n0 7\n0000000000 65535 f \n{''.join(places)}trailer <</Root 1 0 R/Size 7>>\nstartxref\n{len(body)}\n"
    path.write_text(f"{body}{xref}%%EOF", "latin-1")
    return path


def test_a_word_stands_where_it_was_drawn(tmp_path: Path) -> None:
    page = read(tmp_path, lambda canvas: canvas.drawString(100, 700, "Hello world"))
    assert (page.number, page.width, page.height, page.turn) == (1, 595.0, 842.0, 0)
    assert texts(page) == ["Hello", "world"]
    first, second = page.words
    assert first.left == 100
    assert first.top < 842 - 700 < first.bottom
    assert first.right < second.left
    assert (first.top, first.bottom) == (second.top, second.bottom)


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_turned_text_reads_as_if_it_were_not(tmp_path: Path, turn: int) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.translate(300, 400)
        canvas.rotate(turn)
        canvas.drawString(0, 0, "upper line")
        canvas.drawString(0, -20, "lower line")

    page = read(tmp_path, draw)
    assert page.turn == turn
    assert (page.width, page.height) == ((595.0, 842.0) if turn % 180 == 0 else (842.0, 595.0))
    upper, lower = (next(word for word in page.words if word.text == text) for text in ("upper", "lower"))
    assert lower.top - upper.top == pytest.approx(20, abs=0.1)
    assert upper.left == pytest.approx(lower.left)
    assert upper.right - upper.left > upper.bottom - upper.top


@pytest.mark.parametrize("rotation", [0, 90, 180, 270])
def test_a_turned_page_whose_text_is_turned_back_is_upright(tmp_path: Path, rotation: int) -> None:
    """The words have the positions at which a viewer shows them."""
    wide, high = 500.0, 700.0

    def draw(canvas: Canvas) -> None:
        canvas.setPageRotation(rotation)
        # Reportlab takes the size as displayed, and makes the media box the other way round.
        matrices = {90: (0, 1, -1, 0, high, 0), 180: (-1, 0, 0, -1, wide, high), 270: (0, -1, 1, 0, 0, wide)}
        if rotation:
            canvas.transform(*matrices[rotation])
        canvas.drawString(100, high - 50, "Hello")

    page = read_pages(drawn(tmp_path / "page.pdf", draw, size=(wide, high)))[0]
    assert (page.turn, page.width, page.height) == (rotation, wide, high)
    (word,) = page.words
    assert word.left == pytest.approx(100, abs=0.1)
    assert word.top < 50 < word.bottom


def test_a_page_is_cut_to_what_is_shown_of_it(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setCropBox((100, 100, 400, 500))
        for x, y, text in ((120, 450, "inside"), (10, 450, "left"), (450, 450, "right"), (120, 50, "below")):
            canvas.drawString(x, y, text)

    page = read(tmp_path, draw)
    assert (page.width, page.height) == (300, 400)
    (word,) = page.words
    assert (word.text, word.left) == ("inside", 20)
    assert word.top < 50 < word.bottom


def test_what_is_off_the_page_is_not_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for x, y, text in ((-200, 600, "left"), (700, 600, "right"), (50, -50, "below"), (50, 900, "above")):
            canvas.drawString(x, y, text)
        canvas.drawString(50, 600, "here")

    assert texts(read(tmp_path, draw)) == ["here"]


def test_invisible_text_is_read_because_scanners_write_it_under_their_pictures(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        text = canvas.beginText(50, 700)
        text.setTextRenderMode(3)
        text.textLine("recognised text")
        canvas.drawText(text)

    assert texts(read(tmp_path, draw)) == ["recognised", "text"]


def test_text_in_another_direction_is_kept_apart(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(10):
            canvas.drawString(50, 700 - 12 * number, f"{number} BRG-{number} Pipa Galvanis 12.500,00")
        for x, angle, size, text in ((20, 90, 8, "Form A 12 rev. 3"), (60, 45, 50, "LUNAS 20"), (60, 15, 20, "COPY")):
            canvas.saveState()
            canvas.translate(x, 560)
            canvas.rotate(angle)
            canvas.setFont("Helvetica-Bold", size)
            canvas.drawString(0, 0, text)
            canvas.restoreState()

    page = read(tmp_path, draw)
    assert texts(page) == [
        word for number in range(10) for word in (str(number), f"BRG-{number}", "Pipa", "Galvanis", "12.500,00")
    ]
    leaning = {word.text for word in page.askew}
    assert {"Form", "A", "12", "LUNAS", "20", "COPY"} <= leaning
    plain = PlainPage.of(page, "").to_json()
    assert {word["text"] for word in plain["askew"]} == leaning
    assert len(plain["askew"][0]["box"]) == 4


def test_slanted_letters_are_not_a_slanted_line(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.transform(1, 0, 0.34, 1, 0, 0)  # printer drivers slant letters like this if the font has no italic
        canvas.drawString(-150, 700, "a slanted - b")

    page = read(tmp_path, draw)
    assert texts(page) == ["a", "slanted", "-", "b"]
    assert page.askew == ()
    assert "askew" not in PlainPage.of(page, "").to_json()


def test_a_page_leaning_a_little_is_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.rotate(2)
        canvas.drawString(100, 700, "a badly placed scan")

    page = read(tmp_path, draw)
    assert texts(page) == ["a", "badly", "placed", "scan"]


def test_ligatures_and_full_width_letters_are_as_typed(tmp_path: Path) -> None:
    path = mapped(
        tmp_path / "page.pdf",
        "oAce BCD",
        "E F",
        meaning={"A": "ﬃ", "B": "１", "C": "２", "D": "％", "E": "½", "F": "²"},
    )
    assert texts(read_pages(path)[0]) == ["office", "12%", "½", "²"]


def test_accents_are_composed(tmp_path: Path) -> None:
    path = mapped(tmp_path / "page.pdf", "AB caf", meaning={"A": "e", "B": "\u0301"})
    assert texts(read_pages(path)[0])[0] == "é"


def test_what_is_not_seen_is_no_part_of_a_word(tmp_path: Path) -> None:
    path = mapped(tmp_path / "page.pdf", "TotAal B x-AB", meaning={"A": "\u200b", "B": "\ufeff"})
    assert [word.replace("\u200b", "!") for word in texts(read_pages(path)[0])] == ["Total", "x-"]


def test_characters_beyond_the_first_plane_keep_the_rest_in_its_place(tmp_path: Path) -> None:
    path = mapped(tmp_path / "page.pdf", "AA one two", "plain", meaning={"A": "𝔸"})
    page = read_pages(path)[0]
    assert texts(page)[-3:] == ["one", "two", "plain"]
    assert page.words[-1].left == 50
    plain = read_pages(mapped(tmp_path / "plain.pdf", "AA one two", meaning={"A": "A"}))[0]
    assert [word[1:] for word in page.words if word.text == "two"] == [word[1:] for word in plain.words[-1:]]


def test_arabic_and_chinese_do_not_crash(tmp_path: Path) -> None:
    pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))

    def draw(canvas: Canvas) -> None:
        canvas.setFont("HeiseiMin-W3", 10)
        canvas.drawString(50, 700, "請求書 １２３")

    assert texts(read(tmp_path, draw)) == ["請求書", "123"]
    arabic = read_pages(mapped(tmp_path / "arabic.pdf", "ABC 12", meaning={"A": "ل", "B": "ا", "C": "ﻼ"}))[0]
    assert "12" in texts(arabic)


def test_a_soft_hyphen_is_the_hyphen_that_is_seen(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, "soft\u00adhyphen")
        canvas.drawString(50, 680, "BRG-")
        canvas.drawString(50, 668, "00123")
        canvas.drawString(200, 680, "Pipa")

    page = read(tmp_path, draw)
    assert sorted(texts(page)) == ["00123", "BRG-", "Pipa", "soft-hyphen"]
    below = next(word for word in page.words if word.text == "00123")
    assert below.left == 50


def test_words_end_at_a_hard_space_but_numbers_do_not(tmp_path: Path) -> None:
    path = mapped(
        tmp_path / "page.pdf", "Jl.AMelatiA12 1A234A567,89 12A34 1B234", meaning={"A": "\u00a0", "B": "\u202f"}
    )
    assert texts(read_pages(path)[0]) == ["Jl.", "Melati", "12", "1\u00a0234\u00a0567,89", "12", "34", "1\u202f234"]


def test_what_stands_apart_is_not_one_word(tmp_path: Path) -> None:
    """The file never writes a space between these words, however it draws them."""

    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, "Rp")
        canvas.drawString(200, 700, "1.000")
        canvas.drawString(50, 680, "12-")
        canvas.drawString(120, 680, "PCS")
        canvas.drawString(50, 660, "A-1")
        canvas.drawString(50, 640, "B-2")
        canvas.drawString(300, 700, "X-3")

    assert sorted(texts(read(tmp_path, draw))) == ["1.000", "12-", "A-1", "B-2", "PCS", "Rp", "X-3"]


def test_letters_spread_out_are_still_a_word(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        text = canvas.beginText(50, 700)
        text.setCharSpace(1.5)
        text.textLine("INVOICE NO-12")
        canvas.drawText(text)

    assert texts(read(tmp_path, draw)) == ["INVOICE", "NO-12"]


def test_bold_made_by_printing_twice_is_read_once(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        for shift in (0, 0.3):
            canvas.drawString(50 + shift, 700, "Total")
            canvas.drawString(200 + shift, 700, "1.250.000,00")

    assert texts(read(tmp_path, draw)) == ["Total", "1.250.000,00"]


def test_pages_come_one_by_one_and_empty_ones_too(tmp_path: Path) -> None:
    path = drawn(
        tmp_path / "pages.pdf",
        lambda canvas: canvas.drawString(50, 700, "one"),
        lambda canvas: canvas.rect(10, 10, 50, 50),
        lambda canvas: canvas.drawString(50, 700, "three"),
    )
    assert [(page.number, texts(page)) for page in read_pages(path)] == [(1, ["one"]), (2, []), (3, ["three"])]


@pytest.mark.parametrize("text", ["word " * 10, "a-b " * 10, "x- " * 10])
def test_too_much_text_is_refused(tmp_path: Path, text: str) -> None:
    def draw(canvas: Canvas) -> None:
        for number in range(20):
            canvas.drawString(50, 700 - 12 * number, text)

    path = drawn(tmp_path / "page.pdf", draw)
    with pytest.raises(DocumentRejected) as caught:
        read_pages(path, PdfLimits(words_on_page=100))
    assert caught.value.code is FaultCode.TOO_MUCH_TEXT
    with pytest.raises(DocumentRejected) as caught:
        read_pages(path, PdfLimits(words=100))
    assert caught.value.code is FaultCode.TOO_MUCH_TEXT


def test_hidden_words_count_towards_the_limit_on_a_page(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(50, 700, "seen")
        hidden = canvas.beginText(50, 600)
        hidden.setTextRenderMode(3)
        hidden.textLine("hidden " * 10)
        canvas.drawText(hidden)

    path = drawn(tmp_path / "page.pdf", draw)
    [page] = read_pages(path, PdfLimits(words_on_page=11))
    assert texts(page) == ["seen"]
    with pytest.raises(DocumentRejected) as caught:
        read_pages(path, PdfLimits(words_on_page=10))
    assert caught.value.code is FaultCode.TOO_MUCH_TEXT


def test_too_many_pages_are_refused_before_any_is_read(tmp_path: Path) -> None:
    path = drawn(tmp_path / "pages.pdf", *[lambda canvas: canvas.drawString(50, 700, "x")] * 3)
    with pytest.raises(DocumentRejected, match="3 pages; at most 2") as caught:
        read_pages(path, PdfLimits(pages=2))
    assert caught.value.code is FaultCode.TOO_MANY_PAGES


@pytest.mark.parametrize("content", [b"", b"%PDF-1.7 nothing", b"\x00" * 100])
def test_what_is_no_pdf_is_said_to_be_damaged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.pdf"
    path.write_bytes(content)
    with pytest.raises(DocumentRejected) as caught:
        read_pages(path)
    assert caught.value.code is FaultCode.UNREADABLE


def test_a_password_is_asked_for_in_words(tmp_path: Path) -> None:
    from reportlab.lib.pdfencrypt import StandardEncryption

    path = tmp_path / "locked.pdf"
    canvas = Canvas(str(path), encrypt=StandardEncryption("secret", canPrint=0))
    canvas.drawString(50, 700, "hidden")
    canvas.save()
    with pytest.raises(DocumentRejected, match="password") as caught:
        read_pages(path)
    assert caught.value.code is FaultCode.ENCRYPTED


def test_a_part_of_a_word_stands_in_its_part_of_the_box() -> None:
    word = Word("Tanggal:7", 100, 10, 190, 20)
    assert part(word, 8, 9) == Word("7", 180, 10, 190, 20)
    assert part(word, 0, 9) is word


def test_words_are_cut_by_the_positions_of_their_text() -> None:
    words = [Word("ab", 0, 0, 20, 10), Word("cdef", 30, 0, 70, 10), Word("g", 80, 0, 90, 10)]
    assert cut(words, 3, 5) == [Word("cd", 30, 0, 50, 10)]
    assert cut(words, 1, 8) == [Word("b", 10, 0, 20, 10), words[1], words[2]][:2]
    assert cut(words, 2, 3) == []
    assert cut(words, 0, 99) == words


def with_mode(canvas: Canvas, mode: Literal[1, 3, 7], text: str, x: float = 100, y: float = 700) -> None:
    drawn_text = canvas.beginText(x, y)
    drawn_text.setTextRenderMode(mode)
    drawn_text.textOut(text)
    drawn_text.setTextRenderMode(0)
    canvas.drawText(drawn_text)


@pytest.mark.parametrize("mode", [3, 7])
def test_invisible_text_is_not_read(mode: Literal[3, 7], tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(100, 750, "Total 5")
        with_mode(canvas, mode, "Total 500")

    (found,) = read_pages(drawn(tmp_path / "a.pdf", draw))
    assert [word.text for word in found.words] == ["Total", "5"]
    assert not found.recognised


def test_a_page_of_nothing_but_invisible_text_was_recognised(tmp_path: Path) -> None:
    (found,) = read_pages(drawn(tmp_path / "a.pdf", lambda canvas: with_mode(canvas, 3, "Total 500")))
    assert [word.text for word in found.words] == ["Total", "500"]
    assert found.recognised


def test_invisible_digits_do_not_join_a_visible_number(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(100, 700, "12")
        with_mode(canvas, 3, "000", 100 + canvas.stringWidth("12"))

    (found,) = read_pages(drawn(tmp_path / "a.pdf", draw))
    assert [word.text for word in found.words] == ["12"]


def test_white_text_is_read_only_where_it_can_be_seen(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.drawString(100, 750, "black")
        canvas.rect(90, 690, 200, 30, stroke=0, fill=1)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(100, 700, "header")
        canvas.drawString(100, 600, "hidden")

    (found,) = read_pages(drawn(tmp_path / "a.pdf", draw))
    assert [word.text for word in found.words] == ["black", "header"]


def test_white_text_in_a_form_is_read_only_where_it_can_be_seen(tmp_path: Path) -> None:
    """A form is a drawing within the page, as programs use it for a letterhead or a watermark."""

    def draw(canvas: Canvas) -> None:
        canvas.beginForm("inner")
        canvas.rect(0, 0, 60, 10, stroke=0, fill=1)
        canvas.setFillColorRGB(1, 1, 1)
        canvas.rect(0, 40, 60, 10, stroke=0, fill=1)
        canvas.drawString(0, 0, "header")
        canvas.drawString(0, 40, "hidden")
        canvas.endForm()
        canvas.beginForm("outer")
        canvas.translate(50, 10)
        canvas.scale(2, 2)
        canvas.doForm("inner")
        canvas.endForm()
        canvas.drawString(100, 750, "black")
        canvas.translate(50, 590)
        canvas.doForm("outer")  # `header` is at 100, 600, and `hidden` at 100, 680
        canvas.setFillColorRGB(1, 1, 1)
        canvas.drawString(60, 12, "over")
        canvas.drawString(60, 100, "paper")
        canvas.drawString(300, 12, "beside")

    (found,) = read_pages(drawn(tmp_path / "a.pdf", draw))
    assert sorted(word.text for word in found.words) == ["black", "header", "over"]


def test_outlined_text_is_read(tmp_path: Path) -> None:
    def draw(canvas: Canvas) -> None:
        canvas.setFillColorRGB(1, 1, 1)
        with_mode(canvas, 1, "outlined")

    (found,) = read_pages(drawn(tmp_path / "a.pdf", draw))
    assert [word.text for word in found.words] == ["outlined"]

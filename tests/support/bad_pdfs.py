"""PDFs that are broken or hostile in every way we could think of, written byte by byte.

Libraries that write PDFs refuse to write these, so this module has a small writer of its own that refuses nothing.
"""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Mapping

from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.pdfgen.canvas import Canvas

FONT = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"
TEXT = b"BT /F1 12 Tf 50 700 Td (Hello from page one) Tj ET"


def write(objects: Mapping[int, bytes], *, root: int = 1, trailer: bytes = b"", version: bytes = b"1.7") -> bytes:
    """A PDF file with these objects and their cross-reference table."""
    out = bytearray(b"%PDF-" + version + b"\n%\xe2\xe3\xcf\xd3\n")
    places = {}
    for number, content in objects.items():
        places[number] = len(out)
        out += b"%d 0 obj\n" % number + content + b"\nendobj\n"
    table = len(out)
    size = max(objects, default=0) + 1
    out += b"xref\n0 %d\n0000000000 65535 f \n" % size
    for number in range(1, size):
        out += b"%010d 00000 %s \n" % (places.get(number, 0), b"n" if number in places else b"f")
    out += b"trailer\n<< /Size %d /Root %d 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (size, root, trailer, table)
    return bytes(out)


def stream(content: bytes, *, extra: bytes = b"", compress: bool = False) -> bytes:
    if compress:
        content, extra = zlib.compress(content, 9), extra + b" /Filter /FlateDecode"
    return b"<< /Length %d %s >>\nstream\n" % (len(content), extra) + content + b"\nendstream"


def one_page(
    content: bytes = TEXT, *, box: bytes = b"[0 0 595 842]", resources: bytes = b"", **others: bytes
) -> dict[int, bytes]:
    """The objects of a document of one page; `others` are further entries of its page."""
    more = b" ".join(b"/" + name.encode() + b" " + value for name, value in others.items())
    return {
        1: b"<< /Type /Catalog /Pages 2 0 R >>",
        2: b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        3: b"<< /Type /Page /Parent 2 0 R /MediaBox " + box + b" /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> " + resources + b" >> " + more + b" >>",
        4: stream(content),
        5: FONT,
    }


def good() -> bytes:
    return write(one_page())


def truncated() -> bytes:
    return good()[:200]


def without_its_end() -> bytes:
    """A PDF without its cross-reference table and trailer."""
    return good()[: good().index(b"xref")]


def encrypted() -> bytes:
    file = io.BytesIO()
    canvas = Canvas(file, encrypt=StandardEncryption("secret", ownerPassword="owner", strength=128))
    canvas.drawString(50, 700, "Nobody may read this")
    canvas.save()
    return file.getvalue()


def encrypted_for_show() -> bytes:
    """A PDF that is encrypted with an empty password: anybody may read it, but not print it."""
    file = io.BytesIO()
    canvas = Canvas(file, encrypt=StandardEncryption("", ownerPassword="owner", canPrint=0, strength=128))
    canvas.drawString(50, 700, "Everybody may read this")
    canvas.save()
    return file.getvalue()


def no_pages() -> bytes:
    return write({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: b"<< /Type /Pages /Kids [] /Count 0 >>"})


def image_only() -> bytes:
    objects = one_page(b"q 500 0 0 700 0 0 cm /Im1 Do Q", resources=b"/XObject << /Im1 6 0 R >>")
    pixels = b"/Type /XObject /Subtype /Image /Width 8 /Height 8 /ColorSpace /DeviceGray /BitsPerComponent 8"
    return write({**objects, 6: stream(bytes(range(64)), extra=pixels)})


def empty_page() -> bytes:
    return write(one_page(b""))


def many_pages(count: int = 10_000) -> bytes:
    pages = {
        10 + number: b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>"
        for number in range(count)
    }
    kids = b" ".join(b"%d 0 R" % number for number in pages)
    tree = b"<< /Type /Pages /Kids [" + kids + b"] /Count %d >>" % count
    return write({1: b"<< /Type /Catalog /Pages 2 0 R >>", 2: tree, 4: stream(TEXT), 5: FONT, **pages})


def count_that_lies(count: int = 2_000_000_000) -> bytes:
    return write({**one_page(), 2: b"<< /Type /Pages /Kids [3 0 R] /Count %d >>" % count})


def deep_page_tree(depth: int = 20_000) -> bytes:
    objects = {**one_page(), 2: b"<< /Type /Pages /Kids [10 0 R] /Count 1 >>"}
    for level in range(depth):
        kid = 10 + level + 1 if level < depth - 1 else 3
        objects[10 + level] = b"<< /Type /Pages /Parent %d 0 R /Kids [%d 0 R] /Count 1 >>" % (9 + level, kid)
    return write(objects)


def deep_array(depth: int = 200_000) -> bytes:
    return write({**one_page(), 3: one_page()[3][:-2] + b"/Nested " + b"[" * depth + b"]" * depth + b" >>"})


def deep_dictionary(depth: int = 100_000) -> bytes:
    return write({**one_page(), 3: one_page()[3][:-2] + b"/N " + b"<< /N " * depth + b"1" + b" >>" * depth + b" >>"})


def deep_graphics(depth: int = 1_000_000) -> bytes:
    return write(one_page(b"q " * depth + TEXT + b" Q" * depth))


def deep_marked_content(depth: int = 300_000) -> bytes:
    return write(one_page(b"/Span << >> BDC " * depth + TEXT))


def page_of_size(size: bytes) -> bytes:
    return write(one_page(box=b"[0 0 " + size + b" " + size + b"]"))


def page_tree_of_itself() -> bytes:
    return write({**one_page(), 2: b"<< /Type /Pages /Kids [2 0 R] /Count 1 >>"})


def contents_of_itself() -> bytes:
    return write({**one_page(), 4: b"[4 0 R 4 0 R]"})


def length_of_itself() -> bytes:
    return write({**one_page(), 4: b"<< /Length 4 0 R >>\nstream\n" + TEXT + b"\nendstream"})


def form_of_itself() -> bytes:
    resources = b"/XObject << /Fm 6 0 R >>"
    form = b"/Type /XObject /Subtype /Form /BBox [0 0 595 842] /Resources << /XObject << /Fm 6 0 R >> >>"
    return write({**one_page(TEXT + b" /Fm Do", resources=resources), 6: stream(b"/Fm Do /Fm Do", extra=form)})


def table_of_itself() -> bytes:
    """A PDF whose cross-reference table names itself as the previous one."""
    written = good()
    at = int(written.rsplit(b"startxref\n", 1)[1].split()[0])
    return write(one_page(), trailer=b"/Prev %d" % at)


def forms_of_forms(levels: int = 12, fan: int = 10) -> bytes:
    """A PDF in which each form draws the next one ten times: a trillion texts in a kilobyte."""
    objects = one_page(b"/Fm Do", resources=b"/XObject << /Fm 10 0 R >>")
    for level in range(levels):
        inner = b"/Fm Do " * fan if level < levels - 1 else TEXT
        extra = (
            b"/Type /XObject /Subtype /Form /BBox [0 0 595 842]"
            b" /Resources << /Font << /F1 5 0 R >> /XObject << /Fm %d 0 R >> >>" % (11 + level)
        )
        objects[10 + level] = stream(inner, extra=extra)
    return write(objects)


def bomb(megabytes: int = 1000) -> bytes:
    """A PDF whose content stream is blank and gigantic once it is unpacked twice."""
    packer = zlib.compressobj(1)
    once = b"".join(packer.compress(b" " * 1_000_000) for _ in range(megabytes)) + packer.flush()
    twice = zlib.compress(once, 9)
    content = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n" % len(twice) + twice + b"\nendstream"
    return write({**one_page(), 4: content})


def much_text(words: int = 200_000) -> bytes:
    """A PDF with more words on one page than any real page has."""
    lines = b"".join(b"1 0 0 1 %d %d Tm (w%d) Tj " % (n % 500, n % 800, n) for n in range(words))
    objects = one_page()
    objects[4] = stream(b"BT /F1 1 Tf " + lines + b"ET", compress=True)
    return write(objects)


def javascript() -> bytes:
    """A PDF with a script that would run for ever."""
    action = b"<< /S /JavaScript /JS (while\\(true\\){app.alert\\('x'\\);}) >>"
    return write(
        {
            **one_page(AA=b"<< /O " + action + b" >>"),
            1: b"<< /Type /Catalog /Pages 2 0 R /OpenAction " + action + b" >>",
        }
    )


def launches_a_program() -> bytes:
    action = b"<< /S /Launch /F (/bin/sh) /Win << /F (cmd.exe) >> >>"
    return write({**one_page(), 1: b"<< /Type /Catalog /Pages 2 0 R /OpenAction " + action + b" >>"})


def reads_a_file() -> bytes:
    """A PDF with a stream whose content is a file on the reader's machine."""
    return write({**one_page(), 4: b"<< /Length 0 /F (/etc/passwd) >>\nstream\n\nendstream"})


def gigantic_image() -> bytes:
    objects = one_page(TEXT + b" /Im1 Do", resources=b"/XObject << /Im1 6 0 R >>")
    size = b"/Width 2000000000 /Height 2000000000 /ColorSpace /DeviceRGB /BitsPerComponent 16"
    pixels = b"/Type /XObject /Subtype /Image " + size
    return write({**objects, 6: stream(b"x", extra=pixels)})


def gigantic_table() -> bytes:
    """A PDF whose cross-reference table claims to have two billion rows."""
    return good().replace(b"xref\n0 6\n", b"xref\n0 2000000000\n")


def gigantic_object_stream() -> bytes:
    """A PDF whose object stream claims to contain two billion objects."""
    objects = one_page()
    objects[6] = stream(b"7 0 << >>", extra=b"/Type /ObjStm /N 2000000000 /First 4")
    return write(objects)


def gigantic_predictor() -> bytes:
    objects = one_page()
    parameters = b"/DecodeParms << /Predictor 15 /Columns 2000000000 /Colors 32 /BitsPerComponent 16 >>"
    objects[4] = stream(TEXT, extra=parameters, compress=True)
    return write(objects)


def half_characters(code: bytes = b"D800") -> bytes:
    """A PDF with a font that maps its letters to halves of characters, which no text can contain."""
    cmap = (
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def"
        b" 1 begincodespacerange <00> <FF> endcodespacerange 1 beginbfrange <20> <7E> <" + code + b"> endbfrange"
        b" endcmap end end"
    )
    font = b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /ToUnicode 6 0 R >>"
    return write({**one_page(), 5: font, 6: stream(cmap)})


def with_attachment(xml: bytes, name: bytes = b"factur-x.xml") -> bytes:
    """A PDF with an attached XML: a hybrid invoice, or something that pretends to be one."""
    names = b"<< /EmbeddedFiles << /Names [(" + name + b") 6 0 R] >> >>"
    return write(
        {
            **one_page(),
            1: b"<< /Type /Catalog /Pages 2 0 R /Names " + names + b" /AF [6 0 R] >>",
            6: b"<< /Type /Filespec /F ("
            + name
            + b") /UF ("
            + name
            + b") /EF << /F 7 0 R >> /AFRelationship /Alternative >>",
            7: stream(xml, extra=b"/Type /EmbeddedFile /Subtype /text#2Fxml", compress=True),
        }
    )


def random_bytes(size: int = 50_000, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def random_after_the_head(size: int = 50_000, seed: int = 2) -> bytes:
    return b"%PDF-1.7\n" + random_bytes(size, seed)


def mutated(original: bytes, seed: int, *, other: bytes = b"") -> bytes:
    """The document with a few random changes, the same ones for the same seed."""
    chance = random.Random(seed)
    data = bytearray(original)
    for _ in range(chance.choice((1, 1, 2, 4, 16, 64))):
        if not data:
            break
        at = chance.randrange(len(data))
        end = min(len(data), at + chance.choice((1, 4, 32, 500)))
        accident = chance.randrange(9)
        if accident == 0:
            data[at] ^= 1 << chance.randrange(8)
        elif accident == 1:
            data[at:end] = chance.randbytes(end - at)
        elif accident == 2:
            del data[at:end]
        elif accident == 3:
            data[at:at] = data[at:end]
        elif accident == 4:
            data[at:end] = chance.choice((b"-1", b"0", b"4294967295", b"9" * 40, b"/", b"<<", b"[", b"(", b"R", b"\0"))
        elif accident == 5 and other:
            start = chance.randrange(len(other))
            data[at:end] = other[start : start + 500]
        elif accident == 6:
            _swap_number(data, at, chance)
        elif accident == 7:
            target = chance.randrange(len(data))
            data[at:end] = data[target : target + end - at]
        elif chance.random() < 0.2:
            del data[at:]
    return bytes(data)


def _swap_number(data: bytearray, at: int, chance: random.Random) -> None:
    """Change the next number in the text. Most numbers in a PDF point somewhere."""
    while at < len(data) and not 48 <= data[at] <= 57:
        at += 1
    end = at
    while end < len(data) and 48 <= data[end] <= 57:
        end += 1
    if at < end:
        data[at:end] = b"%d" % chance.choice((0, 1, 2, 3, chance.randrange(100), chance.randrange(2**31), 2**63))

"""The blocks above and below the table. Each one draws itself from `y` down and returns its lower end."""

from __future__ import annotations

from collections.abc import Sequence

from support.invoices import wording
from support.invoices.layout import Labels, Layout
from support.invoices.numbers import long_date, terbilang
from support.invoices.sheet import Sheet, width_of, wrap
from support.invoices.truth import Invoice

BANK = ("Pembayaran ditransfer ke", "Bank Mandiri KCP Jakarta Kebon Sirih", "121-00-0987654-3")
SIGNATORY = ("Hormat kami,", "Rr. Dewi Anggraini, S.E.", "Direktur Keuangan")

_AFTER_COLON = 6.0


def head(sheet: Sheet, invoice: Invoice, page: int, pages: int) -> float:
    """Seller at the left, the invoice's data at the right, the buyer below both."""
    layout = sheet.layout
    below_seller = _seller(sheet, invoice, layout.margin)
    below_meta = _meta(sheet, invoice, layout.margin, f"Halaman {page} dari {pages}")
    y = _buyer(sheet, invoice, max(below_seller, below_meta) + layout.top_gap)
    return y + layout.top_gap


def short_head(sheet: Sheet, page: int, pages: int) -> float:
    """The short head of later pages, if the whole head is not repeated."""
    layout = sheet.layout
    sheet.text(layout.right, layout.margin, f"Halaman {page} dari {pages}", align="right")
    return layout.margin + layout.line_height + layout.top_gap


def _seller(sheet: Sheet, invoice: Invoice, y: float) -> float:
    layout = sheet.layout
    size = layout.size + 3
    sheet.text(layout.margin, y, invoice.seller_name, font=layout.font.bold, size=size)
    y += size * layout.leading
    for line in invoice.seller_address:
        sheet.text(layout.margin, y, line)
        y += layout.line_height
    return _entries(sheet, layout.margin, y, [("NPWP", wording.npwp(invoice.seller_npwp, layout))])


def _meta(sheet: Sheet, invoice: Invoice, y: float, page: str) -> float:
    layout = sheet.layout
    entries = [
        ("No. Invoice", invoice.number),
        ("Tanggal", wording.day(invoice.date, layout)),
        ("Jatuh Tempo", wording.day(invoice.due_date, layout)),
    ]
    flush = layout.meta_align == "right"
    x = layout.right if flush else layout.right - layout.meta_width
    if flush and layout.labels is Labels.ALIGNED:
        widest = max(width_of(value, layout.font.regular, layout.size) for _, value in entries)
        x -= _tab(layout, entries) + _AFTER_COLON + widest
    align = layout.meta_align
    sheet.text(layout.right if flush else x, y, "INVOICE", font=layout.font.bold, size=layout.title_size, align=align)
    y += layout.title_size * 1.25
    if layout.labels is Labels.ALIGNED:
        y = _entries(sheet, x, y, entries)
    else:
        for label, value in entries:
            sheet.text(x, y, f"{wording.label(label, layout)} {value}", align=align)
            y += layout.line_height
    sheet.text(layout.right if flush else x, y, page, align=align)
    return y + layout.line_height


def _buyer(sheet: Sheet, invoice: Invoice, y: float) -> float:
    layout = sheet.layout
    x = layout.margin + layout.buyer_x * layout.width
    entries = [("NPWP", wording.npwp(invoice.buyer_npwp, layout))] if invoice.buyer_npwp else []
    if invoice.buyer_email is not None:
        entries.append(("Email", invoice.buyer_email))
    tab = _tab(layout, [("Kepada", ""), *entries])
    under = x
    if layout.buyer_beside_label:
        y = _entries(sheet, x, y, [("Kepada", invoice.buyer_name)], tab=tab)
        if layout.labels is Labels.ALIGNED:
            under = x + tab + _AFTER_COLON
    else:
        sheet.text(x, y, wording.label("Kepada", layout))
        y += layout.line_height
        sheet.text(x, y, invoice.buyer_name, font=layout.font.bold)
        y += layout.line_height
    for line in invoice.buyer_address:
        sheet.text(under, y, line)
        y += layout.line_height
    return _entries(sheet, x, y, entries, tab=tab)


def closing(sheet: Sheet, invoice: Invoice, y: float) -> float:
    """Everything below the table of the last page."""
    layout = sheet.layout
    y += layout.top_gap / 2
    x, below = _totals(sheet, invoice, y)
    if layout.words_beside_totals:
        below = max(below, _in_words(sheet, invoice, y, x - layout.margin - 12))
    else:
        below = _in_words(sheet, invoice, below + layout.line_height / 2, layout.width)
    below += layout.top_gap
    return max(_bank(sheet, invoice, below), _signature(sheet, invoice, below))


def _totals(sheet: Sheet, invoice: Invoice, y: float) -> tuple[float, float]:
    """The totals under the amounts; returns their left edge, too."""
    layout = sheet.layout
    rows = [("Subtotal", invoice.subtotal)]
    if invoice.discount is not None:
        rows.append(("Diskon", invoice.discount))
    rows += [("DPP Nilai Lain", invoice.dpp), ("PPN 12%", invoice.ppn), ("Total", invoice.total)]
    printed = [(label, *wording.money(value, layout)) for label, value in rows]
    amount = layout.column("amount")
    right = amount.x + amount.width - layout.padding
    # A sign at the edge has a column of its own, and so does the colon.
    signs = right - max(width_of(f"Rp {digits}", layout.font.bold, layout.size) for _, _, digits in printed) - 4
    colons = min(signs - 8, amount.x)
    x = colons - max(width_of(label, layout.font.bold, layout.size) for label, _, _ in printed) - 12
    for label, sign, digits in printed:
        font = layout.font.bold if label == "Total" else layout.font.regular
        if label == "Total":
            sheet.rule(x, y - 1, layout.right, y - 1)
        sheet.text(x, y, label, font=font)
        if layout.labels is Labels.ALIGNED:
            sheet.text(colons, y, ":", font=font)
        if sign:
            sheet.text(signs, y, sign, font=font)
        sheet.text(right, y, digits, font=font, align="right")
        y += layout.line_height + 2
    return x, y


def _in_words(sheet: Sheet, invoice: Invoice, y: float, width: float) -> float:
    layout = sheet.layout
    words = f"{wording.label('Terbilang', layout)} {in_words(invoice)}"
    for line in wrap(words, layout.font.italic, layout.size, width):
        sheet.text(layout.margin, y, line, font=layout.font.italic)
        y += layout.line_height
    return y


def in_words(invoice: Invoice) -> str:
    words = terbilang(invoice.total)
    return words[0].upper() + words[1:]


def _bank(sheet: Sheet, invoice: Invoice, y: float) -> float:
    layout = sheet.layout
    invitation, bank, account = BANK
    sheet.text(layout.margin, y, wording.label(invitation, layout))
    sheet.text(layout.margin, y + layout.line_height, bank)
    entries = [("No. Rekening", account), ("Atas Nama", invoice.seller_name)]
    return _entries(sheet, layout.margin, y + 2 * layout.line_height, entries)


def _signature(sheet: Sheet, invoice: Invoice, y: float) -> float:
    layout = sheet.layout
    greeting, name, office = SIGNATORY
    middle = layout.right - layout.size * 9
    for text in (f"Jakarta, {long_date(invoice.date)}", greeting):
        sheet.text(middle, y, text, align="center")
        y += layout.line_height
    y += 3 * layout.line_height
    sheet.text(middle, y, name, align="center")
    half = width_of(name, layout.font.regular, layout.size) / 2
    y += layout.line_height
    sheet.rule(middle - half, y - 1, middle + half, y - 1)
    sheet.text(middle, y, office, align="center")
    return y + layout.line_height


def _entries(
    sheet: Sheet, x: float, y: float, entries: Sequence[tuple[str, str]], *, tab: float | None = None
) -> float:
    """Labelled values below each other."""
    layout = sheet.layout
    tab = _tab(layout, entries) if tab is None else tab
    for label, value in entries:
        if layout.labels is Labels.ALIGNED:
            sheet.text(x, y, label)
            sheet.text(x + tab, y, ":")
            sheet.text(x + tab + _AFTER_COLON, y, value)
        else:
            sheet.text(x, y, f"{wording.label(label, layout)} {value}")
        y += layout.line_height
    return y


def _tab(layout: Layout, entries: Sequence[tuple[str, str]]) -> float:
    widths = [width_of(label, layout.font.regular, layout.size) for label, _ in entries]
    return max(widths, default=0.0) + 8

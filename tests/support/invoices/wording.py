"""Spells values for a layout. Everything on the paper passes through here."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

from support.invoices.layout import Dates, Labels, Layout, NoDiscount, Npwp, Rupiah
from support.invoices.numbers import dotted_npwp, long_date, number, short_date


def money(value: Decimal, layout: Layout) -> tuple[str, str]:
    """The currency sign, if it is at the edge of the cell, and the rest. Money has two decimals or none."""
    return _signed(number(value, places=2 if layout.sen or value % 1 else 0), layout)


def discount(value: Decimal, layout: Layout) -> tuple[str, str]:
    if value or layout.no_discount is NoDiscount.ZERO:
        return money(value, layout)
    if layout.no_discount is NoDiscount.BLANK:
        return "", ""
    # Spreadsheets print an empty amount as `Rp    -` if the sign is at the edge.
    return ("Rp", "-") if layout.rupiah is Rupiah.EDGE else ("", "-")


def _signed(digits: str, layout: Layout) -> tuple[str, str]:
    match layout.rupiah:
        case Rupiah.ABSENT:
            return "", digits
        case Rupiah.JOINED:
            return "", f"Rp{digits}"
        case Rupiah.APART:
            return "", f"Rp {digits}"
        case Rupiah.EDGE:
            return "Rp", digits


def qty(value: Decimal, layout: Layout) -> str:
    return number(value, places=layout.qty_places)


def day(value: date, layout: Layout) -> str:
    return long_date(value) if layout.dates is Dates.LONG else short_date(value)


def npwp(digits: str, layout: Layout) -> str:
    """A tax number. Other texts (the `-` of a tampered invoice) are printed unchanged."""
    if len(digits) != 16:
        return digits
    if layout.npwp is Npwp.DOTTED_16:
        return dotted_npwp(digits)
    if layout.npwp is Npwp.DOTTED_15 and digits.startswith("0"):
        return dotted_npwp(digits[1:])
    return digits


def label(text: str, layout: Layout) -> str:
    return f"{text}:" if layout.labels is Labels.TIGHT else f"{text} :"

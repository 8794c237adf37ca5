"""The content of an invoice before it is printed, which is correct by construction.

`line` and `settle` compute every derived amount, so that an invoice made with them adds up. `problems` lists what does
not add up in an invoice that was tampered with. Text is as printed, numbers are exact, tax numbers are always their 16
digits.
"""

from __future__ import annotations

import dataclasses
import datetime
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

SEN = Decimal("0.01")
ZERO = Decimal(0)
SERVICE_MARK = "(Jasa)"


def half_up(value: Decimal) -> Decimal:
    return value.quantize(SEN, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Line:
    no: int
    code: str | None
    description: str
    hs_code: str | None
    qty: Decimal
    unit: str
    unit_price: Decimal
    discount: Decimal
    amount: Decimal
    is_service: bool


@dataclass(frozen=True)
class Invoice:
    seller_name: str
    seller_address: tuple[str, ...]
    seller_npwp: str
    number: str
    date: datetime.date
    due_date: datetime.date
    buyer_name: str
    buyer_address: tuple[str, ...]
    buyer_npwp: str
    buyer_email: str | None
    lines: tuple[Line, ...]
    subtotal: Decimal
    discount: Decimal | None
    dpp: Decimal
    ppn: Decimal
    total: Decimal


def line(
    no: int,
    description: str,
    qty: Decimal,
    unit: str,
    unit_price: Decimal,
    *,
    discount: Decimal = ZERO,
    code: str | None = None,
    hs_code: str | None = None,
) -> Line:
    """A line that adds up."""
    return Line(
        no=no,
        code=code,
        description=description,
        hs_code=hs_code,
        qty=qty,
        unit=unit,
        unit_price=unit_price,
        discount=discount,
        amount=half_up(qty * unit_price - discount),
        is_service=SERVICE_MARK in description,
    )


def settle(invoice: Invoice) -> Invoice:
    """The same invoice with the totals that its lines' amounts and its discount give."""
    subtotal = sum((line.amount for line in invoice.lines), ZERO)
    net = subtotal - (invoice.discount or ZERO)
    dpp = half_up(net * 11 / 12)
    ppn = half_up(dpp * 12 / 100)
    return dataclasses.replace(invoice, subtotal=subtotal, dpp=dpp, ppn=ppn, total=net + ppn)


def problems(invoice: Invoice) -> list[str]:
    """Everything about the numbers of an invoice that does not add up."""
    found = []
    for position, line in enumerate(invoice.lines, start=1):
        if line.no != position:
            found.append(f"line {position} is numbered {line.no}")
        if line.amount != half_up(line.qty * line.unit_price - line.discount):
            found.append(f"line {line.no}: amount")
        if line.is_service != (SERVICE_MARK in line.description):
            found.append(f"line {line.no}: service")
    right = settle(invoice)
    found += [name for name in ("subtotal", "dpp", "ppn", "total") if getattr(invoice, name) != getattr(right, name)]
    return found

"""Makes invoices from a seed. They fit every layout, and every amount is exact to the sen.

Quantities have at most three decimals, and then the price is in tens, so that no line needs rounding. In a whole
invoice even the tax has no sen, as in most rupiah invoices.
"""

from __future__ import annotations

import dataclasses
import random
from datetime import date, timedelta
from decimal import Decimal

from support.invoices.catalogue import ADDRESSES, BUYERS, EXTRAS, SELLERS, UNITS, WARES, Ware
from support.invoices.layout import Layout
from support.invoices.layouts import LAYOUTS, REFERENCE, varied
from support.invoices.truth import SERVICE_MARK, ZERO, Invoice, Line, line, settle

# The capacity of the narrowest cell of every layout.
MAX_QTY = Decimal("9999.999")
MAX_PRICE = Decimal("99999990")
MAX_DISCOUNT = Decimal("9999999.99")
MAX_AMOUNT = Decimal("999999999.99")

# A net amount of 300 rupiah has a tax base of 275 and a tax of 33: no sen anywhere.
_WHOLE = 300


def make_invoice(seed: int, lines: int | None = None, *, whole: bool | None = None) -> Invoice:
    """A typical invoice. Without `lines` it has 1 to 60 lines; without `whole` it may be of either kind."""
    dice = random.Random(seed)
    count = dice.choice((1, 2, 5, 12, 30, 45, 60)) if lines is None else lines
    whole = dice.random() < 0.4 if whole is None else whole
    seller_name, seller_address = dice.choice(SELLERS)
    buyer_name, buyer_email = dice.choice(BUYERS)
    day = date(2025, 1, 1) + timedelta(days=dice.randrange(500))
    made = tuple(_line(dice, no, whole=whole) for no in range(1, count + 1))
    invoice = Invoice(
        seller_name=seller_name,
        seller_address=seller_address,
        seller_npwp=_npwp(dice),
        number=f"{day:%y%m%d}{dice.randrange(1, 10_000):04d}",
        date=day,
        due_date=day + timedelta(days=dice.choice((0, 14, 30, 45, 60))),
        buyer_name=buyer_name,
        buyer_address=tuple(dice.sample(ADDRESSES, dice.randint(1, 4))),
        buyer_npwp=_npwp(dice),
        buyer_email=buyer_email,
        lines=made,
        subtotal=ZERO,
        discount=None,
        dpp=ZERO,
        ppn=ZERO,
        total=ZERO,
    )
    return settle(dataclasses.replace(invoice, discount=_rebate(dice, made, whole=whole)))


def make_layout(seed: int) -> Layout:
    """Any of the layouts, unchanged or with varied features."""
    dice = random.Random(seed)
    layout = dice.choice(LAYOUTS)
    return layout if dice.random() < 0.3 else varied(layout, dice)


def reference_invoice(lines: int = 510) -> tuple[Invoice, Layout]:
    """The reference invoice for measurements: 510 lines on 17 pages."""
    return make_invoice(2508070002, lines), REFERENCE


def _line(dice: random.Random, no: int, *, whole: bool) -> Line:
    ware = dice.choice(WARES)
    qty, price = _priced(dice, ware, whole=whole)
    discount = ZERO
    if dice.random() < 0.25:
        step = _WHOLE if whole else dice.choice((Decimal("0.01"), Decimal(1), Decimal(500)))
        discount = _stepped(min(qty * price * dice.choice((2, 5, 10, 15)) / 100, MAX_DISCOUNT), step)
    return line(
        no,
        _described(dice, ware),
        qty,
        dice.choice(UNITS[ware.measure]),
        price,
        discount=discount,
        code=_code(dice),
        hs_code=ware.hs_code if dice.random() < 0.85 else None,
    )


def _priced(dice: random.Random, ware: Ware, *, whole: bool) -> tuple[Decimal, Decimal]:
    about = Decimal(ware.price) * dice.randint(60, 160) / 100
    most = max(1, min(1500, int(Decimal(400_000_000) / about)))
    qty = Decimal(dice.choice((dice.randint(1, 12), dice.randint(1, min(most, 48)), dice.randint(1, most))))
    if ware.measure in ("weight", "volume", "length") and dice.random() < 0.5:
        places = 1 if whole else dice.choice((1, 2, 3))
        qty += Decimal(dice.randrange(1, 10**places)).scaleb(-places)
        return qty, max(Decimal(10 * _WHOLE), _stepped(about, 10 * _WHOLE if whole else 10))
    if whole:
        return qty, max(Decimal(_WHOLE), _stepped(about, _WHOLE))
    return qty, _stepped(about, dice.choice((100, 50, 1, Decimal("0.01"))))


def _rebate(dice: random.Random, lines: tuple[Line, ...], *, whole: bool) -> Decimal | None:
    if dice.random() < 0.5:
        return None
    subtotal = sum((line.amount for line in lines), ZERO)
    return _stepped(subtotal * dice.choice((1, 2, 5)) / 100, _WHOLE if whole else Decimal("0.01"))


def _described(dice: random.Random, ware: Ware) -> str:
    kind = dice.random()
    extras = 0 if kind < 0.6 else dice.randint(1, 2) if kind < 0.9 else dice.randint(3, 5)
    words = [ware.description, *dice.sample(EXTRAS, extras)]
    if SERVICE_MARK in ware.description and extras and dice.random() < 0.5:
        # At the end of a long description, the mark may be alone on its line or on the next page.
        words = [*" ".join(words).replace(SERVICE_MARK, "").split(), SERVICE_MARK]
    return " ".join(words)


def _code(dice: random.Random) -> str | None:
    kind = dice.randrange(5)
    value = dice.randrange(100_000)
    return (None, f"BRG-{value:05d}", f"{100_000 + value}", f"SP.{value % 1000:03d}/{value % 7}", f"A{value:05d}")[kind]


def _npwp(dice: random.Random) -> str:
    """Most are old company numbers, which begin with 0; the rest have sixteen digits of their own."""
    first = "0" if dice.random() < 0.75 else str(dice.randint(1, 9))
    return first + "".join(str(dice.randrange(10)) for _ in range(15))


def _stepped(value: Decimal, step: Decimal | int) -> Decimal:
    return (value // Decimal(step)) * Decimal(step)

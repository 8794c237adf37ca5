"""Invoices as Hypothesis strategies, which shrink a failure to the smallest failing invoice."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal

from hypothesis import strategies as st

from support.invoices.catalogue import ADDRESSES, BUYERS, EXTRAS, SELLERS, UNIT_CODES, WARES
from support.invoices.generator import MAX_AMOUNT, MAX_DISCOUNT, MAX_PRICE, MAX_QTY
from support.invoices.layout import Layout
from support.invoices.layouts import LAYOUTS, varied
from support.invoices.truth import SEN, SERVICE_MARK, ZERO, Invoice, Line, line, settle

_WORDS = sorted({word for ware in WARES for word in ware.description.split()} - {SERVICE_MARK}) + sorted(
    {word for extra in EXTRAS for word in extra.split()}
)

npwps = st.one_of(st.from_regex(r"0[0-9]{15}", fullmatch=True), st.from_regex(r"[1-9][0-9]{15}", fullmatch=True))
codes = (
    st.none()
    | st.from_regex(r"[A-H]{1,3}[-./]?[0-9]{2,5}", fullmatch=True)
    | st.from_regex(r"[0-9]{4,8}", fullmatch=True)
)
hs_codes = st.none() | st.from_regex(r"[0-9]{6}", fullmatch=True)
units = st.builds(
    lambda unit, case: str(case(unit)),
    st.sampled_from(list(UNIT_CODES)),
    st.sampled_from([str.lower, str.upper, str.title]),
)


@st.composite
def descriptions(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=18))
    if draw(st.booleans()) and draw(st.booleans()):
        words.insert(draw(st.integers(0, len(words))), SERVICE_MARK)
    return " ".join(words)


@st.composite
def invoice_lines(draw: st.DrawFn, no: int) -> Line:
    places = draw(st.sampled_from((0, 0, 0, 1, 2, 3)))
    qty = draw(st.decimals(Decimal(1).scaleb(-places), MAX_QTY, places=places))
    # A price in so many tens that the product has no more than two decimals.
    step = SEN if places == 0 else Decimal(10)
    most = min(MAX_PRICE, MAX_AMOUNT / qty)
    price = draw(st.integers(1, max(1, int(most / step)))) * step
    discount = ZERO
    if draw(st.booleans()):
        discount = draw(st.decimals(0, min(qty * price, MAX_DISCOUNT), places=2))
    return line(
        no, draw(descriptions()), qty, draw(units), price, discount=discount, code=draw(codes), hs_code=draw(hs_codes)
    )


@st.composite
def invoices(draw: st.DrawFn, *, max_lines: int = 40) -> Invoice:
    count = draw(st.integers(1, max_lines))
    lines = tuple(draw(invoice_lines(no)) for no in range(1, count + 1))
    subtotal = sum((line.amount for line in lines), ZERO)
    seller_name, seller_address = draw(st.sampled_from(SELLERS))
    buyer_name, buyer_email = draw(st.sampled_from(BUYERS))
    day = draw(st.dates(date(2025, 1, 1), date(2027, 12, 31)))
    return settle(
        Invoice(
            seller_name=seller_name,
            seller_address=seller_address,
            seller_npwp=draw(npwps),
            number=draw(st.from_regex(r"25[0-9]{8}", fullmatch=True)),
            date=day,
            due_date=day + timedelta(days=draw(st.integers(0, 90))),
            buyer_name=buyer_name,
            buyer_address=tuple(draw(st.lists(st.sampled_from(ADDRESSES), min_size=1, max_size=4, unique=True))),
            buyer_npwp=draw(npwps),
            buyer_email=buyer_email,
            lines=lines,
            subtotal=ZERO,
            discount=draw(st.none() | st.decimals(0, subtotal, places=2)),
            dpp=ZERO,
            ppn=ZERO,
            total=ZERO,
        )
    )


@st.composite
def layouts(draw: st.DrawFn) -> Layout:
    layout = draw(st.sampled_from(LAYOUTS))
    seed = draw(st.integers(0, 2**16))
    return varied(layout, random.Random(seed)) if seed else layout

"""Invoices of EN 16931 for property tests: any of its terms may be there, and every sum is right."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from hypothesis import strategies as st

from waybill_documents.hybrid.en16931 import TermGroup, TermValue

Draw = Any

_LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn", "Co"), exclude_characters="\ufffe\uffff")
TEXT = st.text(_LETTERS, min_size=1, max_size=12).filter(str.strip)
ID = TEXT.map(str.strip)
DAY = st.dates().filter(lambda day: day.year >= 1000).map(lambda day: day.isoformat())
MONEY = st.decimals("0.01", "9999.99", places=2)
_SCHEMES = st.sampled_from(["0002", "0088", "0060"])
_COUNTRIES = st.sampled_from(["DE", "FR", "NL"])
_TAXES = (("S", "19"), ("S", "7"), ("Z", "0"), ("E", "0"))


def value(text: str | Decimal, **attributes: str) -> TermValue:
    return TermValue(str(text), tuple(attributes.items()))


@st.composite
def invoices(draw: Draw) -> TermGroup:
    """The model of an invoice as it comes back from any document that says it."""
    invoice = TermGroup()
    invoice.add("BT-5", value("EUR"))
    invoice.add("BT-24", value("urn:cen.eu:en16931:2017"))
    invoice.add("BT-3", value(draw(st.sampled_from(["380", "381", "384"]))))
    invoice.add("BT-1", value(draw(ID)))
    invoice.add("BT-2", value(draw(DAY)))
    for term in ("BT-12", "BT-13", "BT-14", "BT-15", "BT-16", "BT-17", "BT-19", "BT-11", "BT-83", "BT-89", "BT-90"):
        _maybe(draw, invoice, term, ID)
    for term in ("BT-10", "BT-20"):
        _maybe(draw, invoice, term, TEXT)
    for term in ("BT-9", "BT-72"):
        _maybe(draw, invoice, term, DAY)
    _one_of(draw, invoice, ("BT-7", DAY), ("BT-8", st.sampled_from(["3", "35", "432"])))
    if draw(st.booleans()):
        start, end = sorted([draw(DAY), draw(DAY)])
        invoice.add("BT-73", value(start))
        invoice.add("BT-74", value(end))
    if draw(st.booleans()):
        invoice.add("BT-18", value(draw(ID)))
        _maybe(draw, invoice, "BT-18-1", st.sampled_from(["ABZ", "AAA"]))
    _notes(draw, invoice)
    _references(draw, invoice)
    _parties(draw, invoice)
    _payment(draw, invoice)
    _money(draw, invoice)
    return invoice


def _maybe(draw: Draw, group: TermGroup, term: str, strategy: st.SearchStrategy[str]) -> None:
    if draw(st.booleans()):
        group.add(term, value(draw(strategy)))


def _one_of(draw: Draw, group: TermGroup, *terms: tuple[str, st.SearchStrategy[str]]) -> None:
    if draw(st.booleans()):
        term, strategy = draw(st.sampled_from(terms))
        group.add(term, value(draw(strategy)))


def _notes(draw: Draw, invoice: TermGroup) -> None:
    for _ in range(draw(st.integers(0, 2))):
        note = TermGroup()
        _maybe(draw, note, "BT-21", st.sampled_from(["AAK", "REG"]))
        note.add("BT-22", value(draw(TEXT)))
        invoice.add("BG-1", note)


def _references(draw: Draw, invoice: TermGroup) -> None:
    for _ in range(draw(st.integers(0, 2))):
        before = TermGroup()
        before.add("BT-25", value(draw(ID)))
        _maybe(draw, before, "BT-26", DAY)
        invoice.add("BG-3", before)
    for _ in range(draw(st.integers(0, 2))):
        document = TermGroup()
        document.add("BT-122", value(draw(ID)))
        _maybe(draw, document, "BT-123", TEXT)
        _maybe(draw, document, "BT-124", st.just("https://example.com/a"))
        if draw(st.booleans()):
            content = draw(st.sampled_from(["", "aG91cnM="]))
            document.add("BT-125", value(content, mimeCode="text/csv", filename="hours.csv"))
        invoice.add("BG-24", document)


def _address(draw: Draw, *terms: str) -> TermGroup:
    address = TermGroup()
    for term in terms[:-1]:
        _maybe(draw, address, term, ID)
    address.add(terms[-1], value(draw(_COUNTRIES)))
    return address


def _identifier(draw: Draw) -> TermValue:
    return value(draw(ID), **({"schemeID": draw(_SCHEMES)} if draw(st.booleans()) else {}))


def _contact(draw: Draw, party: TermGroup, name: str, *terms: str) -> None:
    contact = TermGroup()
    for term in terms:
        _maybe(draw, contact, term, TEXT)
    if contact:
        party.add(name, contact)


def _parties(draw: Draw, invoice: TermGroup) -> None:
    seller = TermGroup()
    seller.add("BT-27", value(draw(TEXT)))
    _maybe(draw, seller, "BT-28", TEXT)
    identifiers = [_identifier(draw) for _ in range(draw(st.integers(0, 3)))]
    for one in sorted(identifiers, key=lambda one: bool(one.attributes)):
        seller.add("BT-29", one)
    if draw(st.booleans()):
        seller.add("BT-30", _identifier(draw))
    seller.add("BT-31", value("DE123456789"))
    _maybe(draw, seller, "BT-32", ID)
    _maybe(draw, seller, "BT-33", TEXT)
    seller.add("BT-34", value("a@example.com", schemeID="EM"))
    seller.add("BG-5", _address(draw, "BT-35", "BT-36", "BT-162", "BT-37", "BT-38", "BT-39", "BT-40"))
    _contact(draw, seller, "BG-6", "BT-41", "BT-42", "BT-43")
    invoice.add("BG-4", seller)
    buyer = TermGroup()
    buyer.add("BT-44", value(draw(TEXT)))
    _maybe(draw, buyer, "BT-45", TEXT)
    if draw(st.booleans()):
        buyer.add("BT-46", _identifier(draw))
        if buyer["BT-46"][0].attributes:  # type: ignore[union-attr]
            _maybe(draw, buyer, "customer number", ID)
    _maybe(draw, buyer, "BT-48", st.just("DE987654321"))
    buyer.add("BG-8", _address(draw, "BT-50", "BT-51", "BT-163", "BT-52", "BT-53", "BT-54", "BT-55"))
    _contact(draw, buyer, "BG-9", "BT-56", "BT-57", "BT-58")
    invoice.add("BG-7", buyer)
    if draw(st.booleans()):
        payee = TermGroup()
        payee.add("BT-59", value(draw(TEXT) + " payee"))
        if draw(st.booleans()):
            payee.add("BT-60", value("payee " + draw(ID)))  # a payee with the seller's identifier would be the seller
        invoice.add("BG-10", payee)
    if draw(st.booleans()):
        agent = TermGroup()
        agent.add("BT-62", value(draw(TEXT)))
        agent.add("BT-63", value("DE111111111"))
        agent.add("BG-12", _address(draw, "BT-64", "BT-65", "BT-164", "BT-66", "BT-67", "BT-68", "BT-69"))
        invoice.add("BG-11", agent)
    if draw(st.booleans()):
        _maybe(draw, invoice, "BT-70", TEXT)
        place = TermGroup()
        place.add("BT-71", _identifier(draw))
        invoice.add("BG-13", place)
        invoice.add("BG-15", _address(draw, "BT-75", "BT-76", "BT-165", "BT-77", "BT-78", "BT-79", "BT-80"))


def _payment(draw: Draw, invoice: TermGroup) -> None:
    code = draw(st.sampled_from(["30", "58", "59", "48"]))
    for number in range(draw(st.integers(0, 2)) if code in {"30", "58"} else 1):
        means = TermGroup()
        means.add("BT-81", value(code))
        if code in {"30", "58"}:
            means.add("BT-84", value(draw(st.sampled_from(["DE02120300000000202051", "4711-12"])) + "0" * number))
            _maybe(draw, means, "BT-85", TEXT)
            _maybe(draw, means, "BT-86", st.just("BYLADEM1001"))
        elif code == "59":
            means.add("BT-91", value("DE02100100100006820101"))
        else:
            means.add("BT-87", value("123456"))
            _maybe(draw, means, "BT-88", TEXT)
        invoice.add("BG-16", means)


def _cent(number: Decimal) -> Decimal:
    return number.quantize(Decimal("0.01"), ROUND_HALF_UP)


def _tax(group: TermGroup, code: str, rate: str, tax: tuple[str, str]) -> None:
    group.add(code, value(tax[0]))
    group.add(rate, value(tax[1]))
    group.add("type of tax", value("VAT"))


def _money(draw: Draw, invoice: TermGroup) -> None:
    bases: dict[tuple[str, str], Decimal] = {}
    lines = [_line(draw, number, bases) for number in range(1, draw(st.integers(1, 3)) + 1)]
    sum_of_lines = sum((net for _, net in lines), Decimal(0))
    less, more = _document_level(draw, invoice, bases)
    for line, _ in lines:
        invoice.add("BG-25", line)
    net = sum_of_lines - less + more
    tax = Decimal(0)
    for rate, base in bases.items():
        breakdown = TermGroup()
        due = _cent(base * Decimal(rate[1]) / 100) or Decimal("0.00")  # never minus nothing
        tax += due
        breakdown.add("BT-116", value(base))
        breakdown.add("BT-117", value(due))
        _tax(breakdown, "BT-118", "BT-119", rate)
        if rate[0] == "E":
            breakdown.add("BT-120", value(draw(TEXT)))
        invoice.add("BG-23", breakdown)
    for term, amount in (("BT-106", sum_of_lines), ("BT-109", net), ("BT-110", tax), ("BT-112", net + tax)):
        invoice.add(term, value(amount))
    if less:
        invoice.add("BT-107", value(less))
    if more:
        invoice.add("BT-108", value(more))
    payable = net + tax
    if draw(st.booleans()):
        paid = draw(MONEY)
        invoice.add("BT-113", value(paid))
        payable -= paid
    if draw(st.booleans()):
        invoice.add("BT-114", value("0.04"))
        payable += Decimal("0.04")
    invoice.add("BT-115", value(payable))
    if draw(st.booleans()):
        invoice.add("BT-6", value("SEK"))
        invoice.add("BT-111", value(_cent(tax * 11)))


def _document_level(draw: Draw, invoice: TermGroup, bases: dict[tuple[str, str], Decimal]) -> tuple[Decimal, Decimal]:
    sums = [Decimal(0), Decimal(0)]
    terms = (
        ("BG-20", "BT-92", "BT-97", "BT-95", "BT-96"),
        ("BG-21", "BT-99", "BT-104", "BT-102", "BT-103"),
    )
    for index, (name, amount_term, reason, code, rate) in enumerate(terms):
        for _ in range(draw(st.integers(0, 2))):
            one, amount, tax = TermGroup(), draw(MONEY), draw(st.sampled_from(sorted(bases)))
            one.add(amount_term, value(amount))
            one.add(reason, value(draw(TEXT)))
            _tax(one, code, rate, tax)
            invoice.add(name, one)
            sums[index] += amount
            bases[tax] += amount if index else -amount
    return sums[0], sums[1]


def _line(draw: Draw, number: int, bases: dict[tuple[str, str], Decimal]) -> tuple[TermGroup, Decimal]:
    line = TermGroup()
    line.add("BT-126", value(str(number)))
    for term in ("BT-127", "BT-154"):
        _maybe(draw, line, term, TEXT)
    for term in ("BT-132", "BT-133", "BT-155", "BT-156"):
        _maybe(draw, line, term, ID)
    if draw(st.booleans()):
        line.add("BT-128", value(draw(ID)))
        _maybe(draw, line, "BT-128-1", st.sampled_from(["ABZ", "AAA"]))
    line.add("BT-153", value(draw(TEXT)))
    if draw(st.booleans()):
        line.add("BT-157", value(draw(ID), schemeID="0160"))
    if draw(st.booleans()):
        line.add("BT-158", value(draw(ID), listID="STI"))
    _maybe(draw, line, "BT-159", _COUNTRIES)
    for _ in range(draw(st.integers(0, 2))):
        feature = TermGroup()
        feature.add("BT-160", value(draw(TEXT)))
        feature.add("BT-161", value(draw(TEXT)))
        line.add("BG-32", feature)
    quantity, price = Decimal(draw(st.integers(1, 50))), draw(st.decimals("0.0001", "99", places=4))
    line.add("BT-129", value(quantity, unitCode="H87"))
    line.add("BT-146", value(price))
    if draw(st.booleans()):
        discount = draw(st.decimals("0", "9", places=4))
        line.add("BT-147", value(discount))
        line.add("BT-148", value(price + discount))
    per = draw(st.sampled_from([1, 10, 100]))
    if draw(st.booleans()):
        line.add("BT-149", value(str(per), unitCode="H87"))
    else:
        per = 1
    net = _cent(quantity * price / per)
    for name, amount_term, reason, sign in (("BG-27", "BT-136", "BT-139", -1), ("BG-28", "BT-141", "BT-144", 1)):
        for _ in range(draw(st.integers(0, 1))):
            one, amount = TermGroup(), draw(MONEY)
            one.add(amount_term, value(amount))
            one.add(reason, value(draw(TEXT)))
            line.add(name, one)
            net += sign * amount
    line.add("BT-131", value(net))
    tax = draw(st.sampled_from(_TAXES))
    _tax(line, "BT-151", "BT-152", tax)
    bases[tax] = bases.get(tax, Decimal(0)) + net
    return line, net

"""Both syntaxes can say every invoice of the standard: CII to UBL to CII is the identity on the model."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from lxml import etree

from support.generated_e_invoices import invoices
from waybill_documents.hybrid import Profile, Syntax
from waybill_documents.hybrid.en16931 import TermGroup, read, write
from waybill_documents.hybrid.validity import validate_written

_SETTINGS = settings(
    max_examples=20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def said_again(invoice: TermGroup, syntax: Syntax) -> TermGroup:
    """What a document in this syntax says, after it was written and parsed."""
    root, lost = write(invoice, syntax)
    parsed = etree.fromstring(etree.tostring(root))
    validate_written(parsed, syntax, Profile.EN16931, invoice)
    found = read(parsed, syntax)
    assert not [*lost, *found.left_over, *found.fillers, *found.unreadable]
    return found.invoice


def round_trip(invoice: TermGroup) -> None:
    from_cii = said_again(invoice, Syntax.CII)
    assert from_cii == invoice
    from_ubl = said_again(from_cii, Syntax.UBL)
    assert from_ubl == invoice
    assert said_again(from_ubl, Syntax.CII) == invoice


@_SETTINGS
@given(invoices())
def test_every_invoice_of_the_standard_survives_both_syntaxes(invoice: TermGroup) -> None:
    round_trip(invoice)


@pytest.mark.heavy
@settings(_SETTINGS, max_examples=2_000)
@given(invoices())
def test_thousands_of_invoices_survive_both_syntaxes(invoice: TermGroup) -> None:
    round_trip(invoice)

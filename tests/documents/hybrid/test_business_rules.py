"""What we write breaks no business rule of EN 16931 that its source keeps."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from lxml import etree

from support.business_rules import NO_RULES, SAME_RULES, BusinessRules, have_rules
from support.generated_e_invoices import invoices
from waybill_documents.hybrid import Loss, Syntax, convert, parse_invoice
from waybill_documents.hybrid.en16931 import TermGroup, write

pytestmark = pytest.mark.skipif(not have_rules(), reason=NO_RULES)

GOLDEN = resources.files("waybill_documents") / "mappings" / "en16931_ubl" / "golden"


@pytest.fixture(scope="module")
def rules() -> BusinessRules:
    return BusinessRules()


def newly_broken(rules: BusinessRules, xml: bytes) -> dict[str, str]:
    """The rules that the conversion of a document breaks, and the document does not."""
    invoice = parse_invoice("x", xml)
    other = Syntax.UBL if invoice.syntax is Syntax.CII else Syntax.CII
    before = rules.broken(invoice.syntax, xml)
    after = rules.broken(other, convert(invoice, other, loss=Loss.LENIENT).xml)
    return {rule: text for rule, text in after.items() if not {rule, SAME_RULES.get(rule)} & {*before}}


def test_a_broken_rule_is_noticed(rules: BusinessRules) -> None:
    text = (GOLDEN / "invoice.ubl.xml").read_text()
    assert "BR-CO-15" in rules.broken(Syntax.UBL, text.replace(">322.20<", ">322.21<").encode())
    text = (GOLDEN / "invoice.cii.xml").read_text()
    assert "BR-CO-15" in rules.broken(Syntax.CII, text.replace(">322.20<", ">322.21<").encode())


@pytest.mark.parametrize("name", ["invoice.cii.xml", "invoice.ubl.xml", "credit_note.cii.xml", "credit_note.ubl.xml"])
def test_the_golden_cases_keep_the_rules_in_the_other_syntax(rules: BusinessRules, name: str) -> None:
    assert not newly_broken(rules, (GOLDEN / name).read_bytes())


def test_the_published_samples_keep_the_rules_in_the_other_syntax(rules: BusinessRules, shared_data: Path) -> None:
    samples = sorted((shared_data / "invoices" / "facturx").glob("*.xml"))
    assert samples
    assert not {sample.name: broken for sample in samples if (broken := newly_broken(rules, sample.read_bytes()))}


@settings(
    max_examples=10,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture],
)
@given(invoice=invoices())
def test_generated_invoices_keep_the_rules_in_both_syntaxes(rules: BusinessRules, invoice: TermGroup) -> None:
    root, _ = write(invoice, Syntax.CII)
    assert not newly_broken(rules, etree.tostring(root))
    root, _ = write(invoice, Syntax.UBL)
    assert not newly_broken(rules, etree.tostring(root))

"""Validates an e-invoice by the published schemas: what came in, and what we write."""

from __future__ import annotations

from lxml import etree

from waybill_documents.hybrid.embedded_invoice import EmbeddedInvoice
from waybill_documents.hybrid.en16931 import Syntax, TermGroup, write
from waybill_documents.hybrid.en16931.syntaxes import CREDIT_NOTE_ROOT
from waybill_documents.hybrid.profiles import Profile, schema_of
from waybill_documents.hybrid.shipped_schemas import CII_D16B, CII_D22B, UBL_2_1
from waybill_documents.xml_output.validation import XmlSchema

_OPEN = frozenset({Profile.EN16931, Profile.EXTENDED})
"""Profiles that are also written by the whole of Cross Industry Invoice: the standard names D16B, Factur-X D22B."""

_HEAD = ("BT-1", "BT-2", "BT-3", "BT-5", "BT-106", "BT-109", "BT-112", "BT-115", "BG-4", "BG-7", "BG-23", "BG-25")
_LINE = ("BT-126", "BT-129", "BT-131", "BT-146", "BT-151", "BT-153")
"""What every invoice of the standard has. The schemas of the whole demand nearly nothing."""


def validate(embedded: EmbeddedInvoice) -> None:
    """Raise DocumentRejected INVALID_XML unless the invoice fits the schema of its profile, or another edition.

    ZUGFeRD 1 is judged by what we would write of it.
    """
    if embedded.from_zugferd_1 is not None:
        validate_written(
            write(embedded.read.invoice, Syntax.CII)[0], Syntax.CII, embedded.profile, embedded.read.invoice
        )
        return
    if not fits_another_edition(embedded.root, embedded.syntax, embedded.profile, embedded.read.invoice):
        _schema(embedded.root, embedded.syntax, embedded.profile).explain(embedded.root)


def validate_written(root: etree._Element, syntax: Syntax, profile: Profile, invoice: TermGroup) -> None:
    """The same for a document that we wrote."""
    if not fits_another_edition(root, syntax, profile, invoice):
        _schema(root, syntax, profile).explain(root)


def fits_another_edition(root: etree._Element, syntax: Syntax, profile: Profile, invoice: TermGroup) -> bool:
    """Whether a CII document fits the whole of an edition, and has what the standard demands."""
    if syntax is Syntax.UBL or profile not in _OPEN or schema_of(profile).fits(root):
        return False
    if not all(term in invoice for term in _HEAD):
        return False
    if not all(term in line for line in invoice.groups_of("BG-25") for term in _LINE):
        return False
    d16b = CII_D16B.schema("CrossIndustryInvoice_100pD16B.xsd")
    return d16b.fits(root) or CII_D22B.schema("CrossIndustryInvoice_100pD22B.xsd").fits(root)


def _schema(root: etree._Element, syntax: Syntax, profile: Profile) -> XmlSchema:
    if syntax is Syntax.CII:
        return schema_of(profile)
    kind = "CreditNote" if root.tag == CREDIT_NOTE_ROOT else "Invoice"
    return UBL_2_1.schema(f"UBL-{kind}-2.1.xsd")

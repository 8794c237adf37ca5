"""The object that is invoiced (BT-18, BT-128), as a document and as a line name it."""

from __future__ import annotations

from waybill_documents.hybrid.cii import first
from waybill_documents.hybrid.ubl.words import Context, Conversion, Elements, Part, code, fixed, group

_OBJECT: tuple[Part, ...] = (
    code("cbc:ID", "ram:IssuerAssignedID"),
    fixed("cbc:DocumentTypeCode", "130"),
)


def invoiced_object(tag: str) -> Part:
    """BT-18 and BT-128, with the scheme of the number."""
    plain = group(tag, *_OBJECT)

    def part(conversion: Conversion, context: Context) -> Elements:
        for reference in plain(conversion, context):
            scheme = conversion.token(first(context, "ram:ReferenceTypeCode"))
            if scheme:
                reference[0].set("schemeID", scheme)
            yield reference

    return part

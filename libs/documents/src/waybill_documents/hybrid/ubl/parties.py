"""The parties: seller, buyer, payee, tax representative and delivery."""

from __future__ import annotations

from waybill_documents.hybrid.cii import AGREEMENT, DELIVERY, SETTLEMENT, all_of, first, text_of
from waybill_documents.hybrid.ubl.parts import (
    SCHEME,
    Context,
    Elements,
    Part,
    UblConversion,
    code,
    day,
    group,
    made,
    text,
)

_ADDRESS: tuple[Part, ...] = (
    text("cbc:StreetName", "ram:LineOne"),
    text("cbc:AdditionalStreetName", "ram:LineTwo"),
    text("cbc:CityName", "ram:CityName"),
    code("cbc:PostalZone", "ram:PostcodeCode"),
    text("cbc:CountrySubentity", "ram:CountrySubDivisionName"),
    group("cac:AddressLine", text("cbc:Line", "ram:LineThree")),
    group("cac:Country", code("cbc:IdentificationCode", "ram:CountryID")),
)
_POSTAL_ADDRESS = group("cac:PostalAddress", *_ADDRESS, at="ram:PostalTradeAddress")


def _one_identifier(tag: str = "cbc:ID") -> Part:
    """One of the two identifiers of CII, preferably the global one. The core allows one; the other stays unused."""

    def part(conversion: UblConversion, context: Context) -> Elements:
        chosen = "ram:GlobalID" if first(context, "ram:GlobalID") is not None else "ram:ID"
        yield from code(tag, chosen, **SCHEME)(conversion, context)

    return part


def _seller_identifiers(conversion: UblConversion, context: Context) -> Elements:
    for path in ("ram:ID", "ram:GlobalID"):  # BT-29, of which a seller may have several
        yield from group("cac:PartyIdentification", code("cbc:ID", ".", **SCHEME), each=path)(conversion, context)
    creditor = first(conversion.root, f"{SETTLEMENT}/ram:CreditorReferenceID")  # BT-90
    if creditor is not None:
        identification = made("cac:PartyIdentification")
        identification.append(made("cbc:ID", conversion.token(creditor), schemeID="SEPA"))
        yield identification


def _tax_registrations(conversion: UblConversion, context: Context) -> Elements:
    for element in all_of(context, "ram:SpecifiedTaxRegistration/ram:ID"):
        scheme = {"VA": "VAT", "FC": "FC"}.get(element.get("schemeID", ""))
        if scheme and text_of(element):
            registration = made("cac:PartyTaxScheme")
            registration.append(made("cbc:CompanyID", conversion.token(element, "schemeID")))
            registration.append(made("cac:TaxScheme"))
            registration[-1].append(made("cbc:ID", scheme))
            yield registration


def _contact_name(conversion: UblConversion, context: Context) -> Elements:
    """BT-41 and BT-56 are one name in UBL, and a person or a department or both in CII."""
    names = [first(context, path) for path in ("ram:PersonName", "ram:DepartmentName")]
    shown = ", ".join(conversion.token(name) for name in names if name is not None)
    if shown:
        yield made("cbc:Name", shown)


_CONTACT = group(
    "cac:Contact",
    _contact_name,
    text("cbc:Telephone", "ram:TelephoneUniversalCommunication/ram:CompleteNumber"),
    text("cbc:ElectronicMail", "ram:EmailURIUniversalCommunication/ram:URIID"),
    at="ram:DefinedTradeContact",
)
_COMPANY_ID = code("cbc:CompanyID", "ram:SpecifiedLegalOrganization/ram:ID", **SCHEME)
_PARTY_NAME = group("cac:PartyName", text("cbc:Name", "ram:Name"))


def _party(identifiers: Part, legal_form: tuple[Part, ...] = ()) -> Part:
    return group(
        "cac:Party",
        code("cbc:EndpointID", "ram:URIUniversalCommunication/ram:URIID", **SCHEME),
        identifiers,
        group("cac:PartyName", text("cbc:Name", "ram:SpecifiedLegalOrganization/ram:TradingBusinessName")),
        _POSTAL_ADDRESS,
        _tax_registrations,
        group("cac:PartyLegalEntity", text("cbc:RegistrationName", "ram:Name"), _COMPANY_ID, *legal_form),
        _CONTACT,
    )


_IDENTIFICATION = group("cac:PartyIdentification", _one_identifier())
_SELLER = _party(_seller_identifiers, (text("cbc:CompanyLegalForm", "ram:Description"),))

PARTIES: tuple[Part, ...] = (
    group("cac:AccountingSupplierParty", _SELLER, at=f"{AGREEMENT}/ram:SellerTradeParty"),  # BG-4
    group("cac:AccountingCustomerParty", _party(_IDENTIFICATION), at=f"{AGREEMENT}/ram:BuyerTradeParty"),  # BG-7
    group(
        "cac:PayeeParty",  # BG-10
        _IDENTIFICATION,
        _PARTY_NAME,
        group("cac:PartyLegalEntity", _COMPANY_ID),
        at=f"{SETTLEMENT}/ram:PayeeTradeParty",
    ),
    group(
        "cac:TaxRepresentativeParty",  # BG-11
        _PARTY_NAME,
        _POSTAL_ADDRESS,
        _tax_registrations,
        at=f"{AGREEMENT}/ram:SellerTaxRepresentativeTradeParty",
    ),
    group(
        "cac:Delivery",  # BG-13
        day("cbc:ActualDeliveryDate", "ram:ActualDeliverySupplyChainEvent/ram:OccurrenceDateTime"),
        group(
            "cac:DeliveryLocation",
            _one_identifier(),
            group("cac:Address", *_ADDRESS, at="ram:PostalTradeAddress"),
            at="ram:ShipToTradeParty",
        ),
        group("cac:DeliveryParty", _PARTY_NAME, at="ram:ShipToTradeParty"),
        at=DELIVERY,
    ),
)

"""The parties: seller, buyer, payee, tax representative and delivery (BG-4 to BG-15)."""

from __future__ import annotations

from waybill_documents.hybrid.en16931.entries import Entry, ignored, part, term
from waybill_documents.hybrid.en16931.kinds import CODE, DAY, ID
from waybill_documents.hybrid.en16931.special_entries import ContactName, CustomerNumber, Identifier

AGREEMENT = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeAgreement"
DELIVERY = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeDelivery"
SETTLEMENT = "rsm:SupplyChainTradeTransaction/ram:ApplicableHeaderTradeSettlement"

SCHEME = ("schemeID",)
CUSTOMER_NUMBER = "customer number"
"""A term that EN 16931 lacks, and both syntaxes have."""


def _address(
    lines: tuple[str, str, str], city: str, postcode: str, subdivision: str, country: str
) -> tuple[Entry, ...]:
    one, two, three = lines
    return (
        term(one, "ram:LineOne", "cbc:StreetName"),
        term(two, "ram:LineTwo", "cbc:AdditionalStreetName"),
        term(three, "ram:LineThree", "cac:AddressLine/cbc:Line"),
        term(city, "ram:CityName", "cbc:CityName"),
        term(postcode, "ram:PostcodeCode", "cbc:PostalZone", ID),
        term(subdivision, "ram:CountrySubDivisionName", "cbc:CountrySubentity"),
        term(country, "ram:CountryID", "cac:Country/cbc:IdentificationCode", CODE),
    )


def _contact(group: str, name: str, telephone: str, mail: str) -> Entry:
    address = "ram:EmailURIUniversalCommunication/ram:URIID"
    return part(
        group,
        "ram:DefinedTradeContact",
        "cac:Party/cac:Contact",
        ContactName(name),
        term(telephone, "ram:TelephoneUniversalCommunication/ram:CompleteNumber", "cbc:Telephone"),
        term(mail, address, "cbc:ElectronicMail"),
        ignored("SMTP", cii=f"{address}/@schemeID"),  # every mail address is one of SMTP
    )


def _tax_number(name: str, cii: str, ubl: str, above: str = "cac:Party/") -> Entry:
    return term(
        name,
        f"ram:SpecifiedTaxRegistration+/ram:ID[@schemeID={cii}]",
        f"{above}cac:PartyTaxScheme+[cac:TaxScheme/cbc:ID{ubl}]/cbc:CompanyID",
        ID,
    )


_LEGAL = "cac:Party/cac:PartyLegalEntity"

_SELLER = part(
    "BG-4",
    f"{AGREEMENT}/ram:SellerTradeParty",
    "cac:AccountingSupplierParty",
    term("BT-27", "ram:Name", f"{_LEGAL}/cbc:RegistrationName"),
    term("BT-28", "ram:SpecifiedLegalOrganization/ram:TradingBusinessName", "cac:Party/cac:PartyName/cbc:Name"),
    Identifier("BT-29", "cac:Party/cac:PartyIdentification+/cbc:ID[@schemeID!=SEPA]", many=True),
    term("BT-30", "ram:SpecifiedLegalOrganization/ram:ID", f"{_LEGAL}/cbc:CompanyID", ID, attributes=SCHEME),
    _tax_number("BT-31", "VA", "=VAT"),
    _tax_number("BT-32", "FC", "!=VAT:FC"),
    term("BT-33", "ram:Description", f"{_LEGAL}/cbc:CompanyLegalForm"),
    term("BT-34", "ram:URIUniversalCommunication/ram:URIID", "cac:Party/cbc:EndpointID", ID, attributes=SCHEME),
    part(
        "BG-5",
        "ram:PostalTradeAddress",
        "cac:Party/cac:PostalAddress",
        *_address(("BT-35", "BT-36", "BT-162"), "BT-37", "BT-38", "BT-39", "BT-40"),
    ),
    _contact("BG-6", "BT-41", "BT-42", "BT-43"),
)

_BUYER = part(
    "BG-7",
    f"{AGREEMENT}/ram:BuyerTradeParty",
    "cac:AccountingCustomerParty",
    term("BT-44", "ram:Name", f"{_LEGAL}/cbc:RegistrationName"),
    term("BT-45", "ram:SpecifiedLegalOrganization/ram:TradingBusinessName", "cac:Party/cac:PartyName/cbc:Name"),
    Identifier("BT-46", "cac:Party/cac:PartyIdentification+/cbc:ID"),
    CustomerNumber(CUSTOMER_NUMBER),
    term("BT-47", "ram:SpecifiedLegalOrganization/ram:ID", f"{_LEGAL}/cbc:CompanyID", ID, attributes=SCHEME),
    _tax_number("BT-48", "VA", "=VAT"),
    _tax_number("buyer tax number", "FC", "!=VAT:FC"),
    term("BT-49", "ram:URIUniversalCommunication/ram:URIID", "cac:Party/cbc:EndpointID", ID, attributes=SCHEME),
    part(
        "BG-8",
        "ram:PostalTradeAddress",
        "cac:Party/cac:PostalAddress",
        *_address(("BT-50", "BT-51", "BT-163"), "BT-52", "BT-53", "BT-54", "BT-55"),
    ),
    _contact("BG-9", "BT-56", "BT-57", "BT-58"),
)

_PAYEE = part(
    "BG-10",
    f"{SETTLEMENT}/ram:PayeeTradeParty",
    "cac:PayeeParty",
    term("BT-59", "ram:Name", "cac:PartyName/cbc:Name"),
    Identifier("BT-60", "cac:PartyIdentification+/cbc:ID[@schemeID!=SEPA]"),
    term("BT-61", "ram:SpecifiedLegalOrganization/ram:ID", "cac:PartyLegalEntity/cbc:CompanyID", ID, attributes=SCHEME),
)

_TAX_REPRESENTATIVE = part(
    "BG-11",
    f"{AGREEMENT}/ram:SellerTaxRepresentativeTradeParty",
    "cac:TaxRepresentativeParty",
    term("BT-62", "ram:Name", "cac:PartyName/cbc:Name"),
    _tax_number("BT-63", "VA", "=VAT", above=""),
    part(
        "BG-12",
        "ram:PostalTradeAddress",
        "cac:PostalAddress",
        *_address(("BT-64", "BT-65", "BT-164"), "BT-66", "BT-67", "BT-68", "BT-69"),
    ),
)

_SHIP_TO = f"{DELIVERY}/ram:ShipToTradeParty"
_LOCATION = "cac:Delivery/cac:DeliveryLocation"


_DELIVER_TO: tuple[Entry, ...] = (
    term("BT-70", f"{_SHIP_TO}/ram:Name", "cac:Delivery/cac:DeliveryParty/cac:PartyName/cbc:Name"),
    term(
        "BT-72",
        f"{DELIVERY}/ram:ActualDeliverySupplyChainEvent/ram:OccurrenceDateTime/udt:DateTimeString",
        "cac:Delivery/cbc:ActualDeliveryDate",
        DAY,
    ),
    part("BG-13", _SHIP_TO, _LOCATION, Identifier("BT-71", "cbc:ID")),
    part(
        "BG-15",
        f"{_SHIP_TO}/ram:PostalTradeAddress",
        f"{_LOCATION}/cac:Address",
        *_address(("BT-75", "BT-76", "BT-165"), "BT-77", "BT-78", "BT-79", "BT-80"),
    ),
)

PARTIES: tuple[Entry, ...] = (_SELLER, _BUYER, _PAYEE, _TAX_REPRESENTATIVE, *_DELIVER_TO)

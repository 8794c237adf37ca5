"""ZUGFeRD 1 is read as the invoice it is, and written in both syntaxes of the standard that came after it."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path

import pypdfium2
import pytest
from lxml import etree

from waybill_documents.conversion import convert as convert_file
from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.hybrid import Loss, Syntax, check_embedded, convert, extract, parse_invoice, validate
from waybill_documents.mapping.loader import shipped

HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<rsm:CrossIndustryDocument xmlns:rsm="urn:ferd:CrossIndustryDocument:invoice:1p0"
 xmlns:ram="urn:un:unece:uncefact:data:standard:ReusableAggregateBusinessInformationEntity:12"
 xmlns:udt="urn:un:unece:uncefact:data:standard:UnqualifiedDataType:15">
<rsm:SpecifiedExchangedDocumentContext>
 <ram:TestIndicator><udt:Indicator>false</udt:Indicator></ram:TestIndicator>
 <ram:GuidelineSpecifiedDocumentContextParameter><ram:ID>urn:ferd:CrossIndustryDocument:invoice:1p0:comfort</ram:ID>
 </ram:GuidelineSpecifiedDocumentContextParameter>
</rsm:SpecifiedExchangedDocumentContext>
<rsm:HeaderExchangedDocument>
 <ram:ID>2015-17</ram:ID><ram:Name>RECHNUNG</ram:Name><ram:TypeCode>380</ram:TypeCode>
 <ram:IssueDateTime><udt:DateTimeString format="102">20150302</udt:DateTimeString></ram:IssueDateTime>
</rsm:HeaderExchangedDocument>
<rsm:SpecifiedSupplyChainTradeTransaction>
 <ram:ApplicableSupplyChainTradeAgreement>
  <ram:SellerTradeParty><ram:Name>Obsthof Nord</ram:Name>
   <ram:PostalTradeAddress><ram:PostcodeCode>21129</ram:PostcodeCode><ram:LineOne>Am Deich 3</ram:LineOne>
    <ram:CityName>Hamburg</ram:CityName><ram:CountryID>DE</ram:CountryID></ram:PostalTradeAddress>
   <ram:SpecifiedTaxRegistration><ram:ID schemeID="VA">DE111111111</ram:ID></ram:SpecifiedTaxRegistration>
  </ram:SellerTradeParty>
  <ram:BuyerTradeParty><ram:Name>Marktstand Mitte</ram:Name>
   <ram:PostalTradeAddress><ram:CityName>Bremen</ram:CityName><ram:CountryID>DE</ram:CountryID></ram:PostalTradeAddress>
  </ram:BuyerTradeParty>
  <ram:BuyerOrderReferencedDocument><ram:IssueDateTime>2015-02-20T00:00:00</ram:IssueDateTime><ram:ID>B-9</ram:ID>
  </ram:BuyerOrderReferencedDocument>
 </ram:ApplicableSupplyChainTradeAgreement>
 <ram:ApplicableSupplyChainTradeDelivery>
  <ram:DeliveryNoteReferencedDocument><ram:ID>L-4</ram:ID></ram:DeliveryNoteReferencedDocument>
 </ram:ApplicableSupplyChainTradeDelivery>
 <ram:ApplicableSupplyChainTradeSettlement>
  <ram:InvoiceCurrencyCode>EUR</ram:InvoiceCurrencyCode>
  <ram:SpecifiedTradeSettlementPaymentMeans><ram:TypeCode>58</ram:TypeCode>
   <ram:PayeePartyCreditorFinancialAccount><ram:IBANID>DE02120300000000202051</ram:IBANID>
    <ram:ProprietaryID>202051</ram:ProprietaryID></ram:PayeePartyCreditorFinancialAccount>
   <ram:PayeeSpecifiedCreditorFinancialInstitution><ram:BICID>BYLADEM1001</ram:BICID>
    <ram:GermanBankleitzahlID>12030000</ram:GermanBankleitzahlID></ram:PayeeSpecifiedCreditorFinancialInstitution>
  </ram:SpecifiedTradeSettlementPaymentMeans>
  <ram:ApplicableTradeTax><ram:CalculatedAmount currencyID="EUR">7.70</ram:CalculatedAmount>
   <ram:TypeCode>VAT</ram:TypeCode><ram:BasisAmount currencyID="EUR">110.00</ram:BasisAmount>
   <ram:CategoryCode>S</ram:CategoryCode><ram:ApplicablePercent>7.00</ram:ApplicablePercent></ram:ApplicableTradeTax>
  <ram:SpecifiedLogisticsServiceCharge><ram:Description>Versand</ram:Description>
   <ram:AppliedAmount currencyID="EUR">10.00</ram:AppliedAmount>
   <ram:AppliedTradeTax><ram:TypeCode>VAT</ram:TypeCode><ram:CategoryCode>S</ram:CategoryCode>
    <ram:ApplicablePercent>7.00</ram:ApplicablePercent></ram:AppliedTradeTax></ram:SpecifiedLogisticsServiceCharge>
  <ram:SpecifiedTradePaymentTerms><ram:Description>30 Tage netto</ram:Description>
   <ram:DueDateDateTime><udt:DateTimeString format="102">20150401</udt:DateTimeString></ram:DueDateDateTime>
  </ram:SpecifiedTradePaymentTerms>
  <ram:SpecifiedTradeSettlementMonetarySummation>
   <ram:LineTotalAmount currencyID="EUR">100.00</ram:LineTotalAmount>
   <ram:ChargeTotalAmount currencyID="EUR">10.00</ram:ChargeTotalAmount>
   <ram:AllowanceTotalAmount currencyID="EUR">0.00</ram:AllowanceTotalAmount>
   <ram:TaxBasisTotalAmount currencyID="EUR">110.00</ram:TaxBasisTotalAmount>
   <ram:TaxTotalAmount currencyID="EUR">7.70</ram:TaxTotalAmount>
   <ram:GrandTotalAmount currencyID="EUR">117.70</ram:GrandTotalAmount>
   <ram:DuePayableAmount currencyID="EUR">117.70</ram:DuePayableAmount>
  </ram:SpecifiedTradeSettlementMonetarySummation>
 </ram:ApplicableSupplyChainTradeSettlement>
"""
REMARK = """<ram:IncludedSupplyChainTradeLineItem><ram:AssociatedDocumentLineDocument>
 <ram:IncludedNote><ram:Content>Aus Lieferung L-4:</ram:Content></ram:IncludedNote>
 </ram:AssociatedDocumentLineDocument></ram:IncludedSupplyChainTradeLineItem>"""
LINE = """<ram:IncludedSupplyChainTradeLineItem>
 <ram:AssociatedDocumentLineDocument>{id}</ram:AssociatedDocumentLineDocument>
 <ram:SpecifiedSupplyChainTradeAgreement>
  <ram:GrossPriceProductTradePrice><ram:ChargeAmount currencyID="EUR">6.00</ram:ChargeAmount>
   <ram:AppliedTradeAllowanceCharge><ram:ChargeIndicator><udt:Indicator>false</udt:Indicator></ram:ChargeIndicator>
    <ram:ActualAmount currencyID="EUR">1.00</ram:ActualAmount><ram:Reason>Rabatt</ram:Reason>
   </ram:AppliedTradeAllowanceCharge></ram:GrossPriceProductTradePrice>
  <ram:NetPriceProductTradePrice><ram:ChargeAmount currencyID="EUR">5.00</ram:ChargeAmount>
  </ram:NetPriceProductTradePrice>
 </ram:SpecifiedSupplyChainTradeAgreement>
 <ram:SpecifiedSupplyChainTradeDelivery><ram:BilledQuantity unitCode="KGM">10</ram:BilledQuantity>
 </ram:SpecifiedSupplyChainTradeDelivery>
 <ram:SpecifiedSupplyChainTradeSettlement>
  <ram:ApplicableTradeTax><ram:TypeCode>VAT</ram:TypeCode><ram:CategoryCode>S</ram:CategoryCode>
   <ram:ApplicablePercent>7.00</ram:ApplicablePercent></ram:ApplicableTradeTax>
  <ram:SpecifiedTradeSettlementMonetarySummation><ram:LineTotalAmount currencyID="EUR">50.00</ram:LineTotalAmount>
  </ram:SpecifiedTradeSettlementMonetarySummation>
 </ram:SpecifiedSupplyChainTradeSettlement>
 <ram:SpecifiedTradeProduct><ram:SellerAssignedID>A1</ram:SellerAssignedID><ram:Name>Äpfel</ram:Name>
 </ram:SpecifiedTradeProduct>
</ram:IncludedSupplyChainTradeLineItem>"""
FOOT = "</rsm:SpecifiedSupplyChainTradeTransaction></rsm:CrossIndustryDocument>"
INVOICE = (HEAD + REMARK + LINE.format(id="<ram:LineID>1</ram:LineID>") + LINE.format(id="") + FOOT).encode()


def test_its_values_are_those_of_any_other_invoice() -> None:
    invoice = parse_invoice("", INVOICE)
    extracted = extract(invoice)
    values = {name: value.value for name, value in extracted.fields.items()}
    assert values["number"] == "2015-17"
    assert values["issue_date"] == date(2015, 3, 2)
    assert values["due_date"] == date(2015, 4, 1)
    assert values["order_reference"] == "B-9"
    assert values["charges"] == Decimal("10.00")
    assert values["payable"] == Decimal("117.70")
    lines = [{name: value.value for name, value in row.items()} for row in extracted.tables["lines"]]
    assert [line["id"] for line in lines] == ["1", "2"]
    assert lines[0]["name"] == "Äpfel"
    assert lines[0]["tax_rate"] == Decimal("7.00")
    assert all(result.passed is not False for result in check_embedded(invoice, extracted))


@pytest.mark.parametrize("syntax", Syntax)
def test_it_is_written_in_both_syntaxes_by_the_schema_and_says_the_same(syntax: Syntax) -> None:
    invoice = parse_invoice("", INVOICE)
    converted = convert(invoice, syntax)  # validates by the published schema
    again = parse_invoice("", converted.xml)
    assert again.syntax is syntax
    assert again.guideline == "urn:cen.eu:en16931:2017"
    assert again.read.invoice == invoice.read.invoice
    assert invoice.read.invoice.text("BT-16") == "L-4"
    charge = next(invoice.read.invoice.groups_of("BG-21"))
    assert (charge.text("BT-99"), charge.text("BT-104")) == ("10.00", "Versand")
    notes = [note.text("BT-22") for note in invoice.read.invoice.groups_of("BG-1")]
    assert notes == ["Aus Lieferung L-4:"]


def test_what_was_taken_out_is_told_with_its_place() -> None:
    dropped = convert(parse_invoice("", INVOICE), Syntax.UBL).dropped
    told = {str(finding.params["element"]).rpartition("/")[2]: finding.params["value"] for finding in dropped}
    assert told == {
        "IssueDateTime": "2015-02-20T00:00:00",
        "ProprietaryID": "202051",
        "GermanBankleitzahlID": "12030000",
        "Reason": "Rabatt",
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "<udt:Indicator>false</udt:Indicator></ram:TestIndicator>",
            "<udt:Indicator>true</udt:Indicator></ram:TestIndicator>",
        ),
        ("<ram:IBANID>DE02120300000000202051</ram:IBANID>", ""),
        ("<ram:Name>Obsthof Nord</ram:Name>", "<ram:Name>Obsthof Nord</ram:Name><ram:RoleCode>SE</ram:RoleCode>"),
    ],
)
def test_what_would_change_the_invoice_is_refused_unless_one_is_lenient(old: str, new: str) -> None:
    text = INVOICE.decode()
    assert text.count(old) == 1
    invoice = parse_invoice("", text.replace(old, new).encode())
    with pytest.raises(DocumentRejected) as refused:
        convert(invoice, Syntax.CII)
    assert refused.value.code is FaultCode.UNSUPPORTED_CONSTRUCT
    assert convert(invoice, Syntax.CII, loss=Loss.LENIENT).dropped


def test_an_invoice_that_lacks_what_the_standard_demands_is_refused_by_the_schema() -> None:
    text = INVOICE.decode().replace("<ram:TypeCode>380</ram:TypeCode>", "")
    for xml in (text, "<CrossIndustryDocument xmlns='urn:ferd:CrossIndustryDocument:invoice:1p0'/>"):
        with pytest.raises(DocumentRejected) as refused:
            validate(parse_invoice("", xml.encode()))
        assert refused.value.code is FaultCode.INVALID_XML


@pytest.mark.parametrize("name", ["en16931_cii", "en16931_ubl"])
def test_it_is_found_in_a_pdf(tmp_path: Path, name: str) -> None:
    document = pypdfium2.PdfDocument.new()
    document.new_page(595, 842)
    document.new_attachment("ZUGFeRD-invoice.xml").set_data(INVOICE)
    file = tmp_path / "a.pdf"
    document.save(str(file))
    document.close()
    made = convert_file(file, "pdf", mapping=shipped(name), wants="xml", clock=lambda: 0.0).body
    assert etree.fromstring(made).tag.endswith(("}CrossIndustryInvoice", "}Invoice"))

"""Words that name a value of an invoice without doubt, in several languages.

A word that another value may have too is not here: `Total` may be net or gross, `Datum` the date of an order. A value
is found on the page without any label; only a difference needs one from this list.
"""

from __future__ import annotations

from typing import NamedTuple

from waybill_documents.text_lines import fold


class Label(NamedTuple):
    """A folded phrase and the embedded value that it is about. Some say by it another value, which is no difference."""

    phrase: str
    means: tuple[str, ...]


def _labels(means: tuple[str, ...], *phrases: str) -> list[Label]:
    return [Label(fold(phrase), means) for phrase in phrases]


NUMBER = _labels(
    ("number",),
    *("Rechnungsnummer", "Rechnungs-Nr", "Rechnungs-Nummer", "Rechnungsnr", "Rechnung Nr", "Belegnummer", "Beleg-Nr"),
    *("Gutschriftsnummer", "Invoice number", "Invoice no", "Invoice #", "Credit note number", "Credit note no"),
    *("Numéro de facture", "Facture n°", "N° de facture", "Factuurnummer", "No. Faktur", "Nomor faktur", "No. Invoice"),
    *("Número de factura", "Factura n°", "Numero fattura", "Fattura n.", "Número da fatura", "Numer faktury"),
)
ISSUE_DATE = _labels(
    ("issue_date",),
    *("Rechnungsdatum", "Belegdatum", "Ausstellungsdatum", "Gutschriftsdatum", "Invoice date", "Date of invoice"),
    *("Date of issue", "Issue date", "Credit note date", "Date de facture", "Date de la facture", "Date d'émission"),
    *("Factuurdatum", "Tanggal faktur", "Tanggal invoice", "Fecha de factura", "Data fattura", "Data da fatura"),
    *("Data wystawienia",),
)
DUE_DATE = _labels(
    ("due_date",),
    *("Fälligkeitsdatum", "Fällig am", "Zahlbar bis", "Due date", "Payment due date", "Date d'échéance", "Vervaldatum"),
    *("Jatuh tempo", "Fecha de vencimiento", "Data di scadenza", "Data de vencimento", "Termin płatności"),
)
AMOUNTS = [
    *_labels(("line_total",), "Positionssumme", "Summe der Positionen", "Summe Positionen", "Sum of lines"),
    *_labels(("charges",), "Gesamtbetrag der Zuschläge", "Summe Zuschläge", "Total charges", "Sum of charges"),
    *_labels(("allowances",), "Gesamtbetrag der Abschläge", "Summe Abschläge", "Total allowances", "Sum of allowances"),
    *_labels(
        ("net",),
        *("Rechnungssumme ohne USt", "Nettosumme", "Summe netto", "Gesamt netto", "Gesamtbetrag netto", "Netto gesamt"),
        *("Net total", "Total net", "Total excl. VAT", "Total excluding VAT", "Total without VAT", "Total net amount"),
        *("Total HT", "Montant HT", "Totaal excl. btw", "Base imponible", "Totale imponibile", "Razem netto"),
    ),
    *_labels(
        ("tax",),
        *("Steuerbetrag", "Summe USt", "Summe MwSt", "Umsatzsteuer gesamt", "MwSt. gesamt", "Total VAT", "Total tax"),
        *("VAT total", "Total TVA", "Montant TVA", "Totaal btw", "Totale IVA", "Total IVA", "Razem VAT"),
    ),
    *_labels(
        ("gross",),
        *("Bruttosumme", "Bruttobetrag", "Gesamt brutto", "Summe brutto", "Gesamtbetrag brutto", "Total incl. VAT"),
        *("Total including VAT", "Gross total", "Total gross", "Total TTC", "Montant TTC", "Totaal incl. btw"),
        "Razem brutto",
    ),
    *_labels(
        ("gross", "payable"),
        *("Rechnungsbetrag", "Grand total", "Invoice total", "Totale fattura", "Total factura"),
    ),
    *_labels(("prepaid",), "Erhaltene Anzahlungen", "Bereits gezahlt", "Already paid", "Paid amount", "Prepaid amount"),
    *_labels(
        ("payable",),
        *("Zahlbetrag", "Zu zahlen", "Zu zahlender Betrag", "Zahlungsbetrag", "Fälliger Betrag", "Amount due"),
        *("Amount payable", "Balance due", "Total due", "Net à payer", "À payer", "Te betalen", "Da pagare"),
        *("Total a pagar", "Do zapłaty"),
    ),
]
DOCUMENTS = tuple(
    word.casefold()
    for word in (
        *("Rechnung", "Handelsrechnung", "Gutschrift", "Korrekturrechnung", "Rechnungskorrektur", "Abschlagsrechnung"),
        *("Teilrechnung", "Schlussrechnung", "Invoice", "Credit note", "Tax invoice", "Commercial invoice", "Facture"),
        *("Avoir", "Factuur", "Creditnota", "Faktur", "Factura", "Fattura", "Fatura", "Faktura"),
    )
)
"""What a heading calls the document: `Rechnung Nr. 17 vom 3. Mai 2024`."""
QUANTITY_COLUMN = tuple(
    fold(word)
    for word in (
        *("Menge", "Anzahl", "Quantity", "Qty", "Quantité", "Qté", "Aantal", "Cantidad", "Quantità", "Quantidade"),
        *("Ilość", "Stückzahl"),
    )
)
AMOUNT_COLUMN = tuple(
    fold(word)
    for word in (
        *("Nettobetrag", "Gesamtpreis", "Gesamt", "Betrag", "Positionsbetrag", "Summe", "Line amount", "Line total"),
        *("Amount", "Net amount", "Total", "Total price", "Montant", "Montant HT", "Total HT", "Bedrag", "Totaal"),
        *("Importe", "Importo", "Totale", "Jumlah", "Wartość netto"),
    )
)

"""A shipped mapping may only be widened: it accepts what it refused, and what it converted comes out the same."""

from __future__ import annotations

import dataclasses
import hashlib
from importlib import resources
from pathlib import Path

import pytest

from support.invoices import Layout, make_invoice, make_layout, print_invoice
from waybill_documents.catalogue import EARLIER, names
from waybill_documents.document_reader import read_pdf
from waybill_documents.golden_cases import golden_cases
from waybill_documents.mapping.loader import LoadedMapping, shipped, shipped_as
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.reading import Reading
from waybill_documents.stages import Stages

MAPPINGS = resources.files("waybill_documents") / "mappings"
SHA256_OF_0_1_0 = {
    "coolblue_v1": "3e02987e3b39adf3ae124c37705286a8c8a58f939155c16bb30946fec4bba27d",
    "pt_simon_invoice_v1": "b1a8aedbf2c7b00bca5763454fd4bbd485b846b876f72c70640a18b31c959909",
}


def both(name: str) -> tuple[LoadedMapping, LoadedMapping]:
    earlier, current = shipped_as(name, SHA256_OF_0_1_0[name]), shipped(name)
    assert earlier is not None
    assert current is not None
    return earlier, current


def read(source: Path, mapping: LoadedMapping) -> Reading:
    return read_pdf(source, mapping, PdfLimits(), Stages(lambda: 0.0))


def test_a_mapping_is_found_by_its_hash() -> None:
    assert {name for name in names() if (MAPPINGS / name / EARLIER).is_dir()} == SHA256_OF_0_1_0.keys()
    for name, sha256 in SHA256_OF_0_1_0.items():
        earlier, current = both(name)
        assert (earlier.sha256, earlier.mapping.name) == (sha256, name)
        assert current.sha256 != sha256
        assert shipped_as(name, current.sha256) is current
    assert shipped_as("pt_simon_invoice_v1", hashlib.sha256(b"").hexdigest()) is None
    assert shipped_as("../secret", SHA256_OF_0_1_0["coolblue_v1"]) is None


@pytest.mark.parametrize("name", SHA256_OF_0_1_0)
def test_what_the_earlier_text_writes_the_current_one_writes_too(name: str) -> None:
    earlier, current = both(name)
    held = [case for case in golden_cases(MAPPINGS / name) if case.difference(earlier) == ""]
    assert len(held) >= 1
    assert all(case.difference(current) == "" for case in held)


def test_invoices_come_out_the_same(shared_data: Path, tmp_path: Path) -> None:
    sources = [("coolblue_v1", shared_data / "invoices" / "vendors" / "coolblue1.pdf")]
    for seed in range(6):
        sources.append(("pt_simon_invoice_v1", tmp_path / f"{seed}.pdf"))
        sources[-1][1].write_bytes(print_invoice(make_invoice(seed, 8), make_layout(seed)))
    for name, source in sources:
        earlier, current = both(name)
        assert read(source, current).xml(pretty=True) == read(source, earlier).xml(pretty=True)


@pytest.mark.parametrize(
    ("hs_code", "unit", "code"),
    [("84.13", "pcs.", "841300"), ("84.13.91", "Pcs.", "841391"), ("8413", "PCS", "841300")],
)
def test_codes_and_units_with_full_stops(hs_code: str, unit: str, code: str, tmp_path: Path) -> None:
    """A heading of the tariff is printed as `84.13` too, and a unit is an abbreviation."""
    for seed in (1, 5, 9):
        invoice, layout = make_invoice(seed, 4), narrow(make_layout(seed))
        lines = tuple(dataclasses.replace(line, hs_code=hs_code, unit=unit) for line in invoice.lines)
        (tmp_path / "invoice.pdf").write_bytes(print_invoice(dataclasses.replace(invoice, lines=lines), layout))
        reading = read(tmp_path / "invoice.pdf", both("pt_simon_invoice_v1")[1])
        assert reading.findings == []
        rows = reading.extracted.tables["lines"]
        assert {row["goods_code"].value for row in rows} == {code}
        assert {row["unit_code"].value for row in rows} == {"UM.0021"}


def narrow(layout: Layout) -> Layout:
    """The layout in smaller print, so that longer codes fit into their column."""
    return dataclasses.replace(layout, size=layout.size * 0.8)

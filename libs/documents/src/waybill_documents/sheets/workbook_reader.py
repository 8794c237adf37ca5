"""Reads a workbook or a CSV file by a mapping: the sheets, their layout, the extraction, and the names of the cells."""

from __future__ import annotations

from pathlib import Path

from waybill_documents.extraction import extract
from waybill_documents.faults import MappingFault
from waybill_documents.geometry import Page
from waybill_documents.locales import locale_rules
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.office.office_limits import OfficeLimits
from waybill_documents.reading import Reading, judged
from waybill_documents.sheets.cell_places import named_by_cells
from waybill_documents.sheets.layout import MOST_WORDS, LaidOutSheet, laid_out
from waybill_documents.sheets.sheet_reader import SheetKind, read_sheets
from waybill_documents.stages import Stages


def read_workbook(
    source: Path,
    kind: SheetKind,
    loaded: LoadedMapping,
    stages: Stages,
    limits: OfficeLimits | None = None,
    *,
    keep: list[Page] | None = None,
) -> Reading:
    """Read an Excel workbook or a CSV file by a mapping, as far as possible. The sheets are kept if there is a list."""
    mapping = loaded.mapping
    if mapping.embedded is not None:
        raise MappingFault(DocumentMessage("mapping.reads_embedded_only", mapping=mapping.name))
    locale = locale_rules(mapping.locale)
    sheets: list[LaidOutSheet] = []
    with stages.timed("words"):
        left = MOST_WORDS
        for number, sheet in enumerate(read_sheets(source, kind, mapping, limits or OfficeLimits()), start=1):
            sheets.append(laid_out(sheet, number, locale, left))
            left -= len(sheets[-1].page.words)
    if keep is not None:
        keep.extend(sheet.page for sheet in sheets)
    extraction = extract((sheet.page for sheet in sheets), len(sheets), mapping, stages)
    with stages.timed("values"):
        extraction = named_by_cells(extraction, mapping, locale, sheets)
    listed = [{"number": sheet.grid.number, "name": sheet.grid.name} for sheet in sheets]
    return judged(loaded, extraction, {"kind": kind, "sheets": listed}, stages)

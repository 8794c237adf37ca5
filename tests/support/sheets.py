"""Workbooks and CSV files that a test writes cell by cell and reads with a mapping."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from support.workbooks import Cell, save, sheet, workbook_parts
from waybill_documents.mapping.loader import LoadedMapping, parse
from waybill_documents.reading import Reading
from waybill_documents.sheets.workbook_reader import read_workbook
from waybill_documents.stages import Stages

Rows = Sequence[Sequence[Cell]]


def loaded(**rules: Any) -> LoadedMapping:
    """A mapping with these rules, in German unless they say otherwise."""
    given = {"format": 1, "name": "sheet_v1", "title": "Sheet", "locale": {"base": "de"}} | rules
    return LoadedMapping(parse(json.dumps(given).encode()), "0" * 64, None)


def workbook(path: Path, sheets: Mapping[str, Rows], *, hidden: Sequence[str] = (), merged: Sequence[str] = ()) -> Path:
    """A workbook; the merged cells are those of every sheet."""
    return save(path, workbook_parts({name: sheet(rows, merged) for name, rows in sheets.items()}, hidden=hidden))


def read_sheets(path: Path, mapping: LoadedMapping) -> Reading:
    """What the mapping reads from a workbook, or from a CSV file if the name ends so."""
    return read_workbook(path, "text" if path.suffix == ".csv" else "xlsx", mapping, Stages(lambda: 0.0))

"""Turns a record back into the values it was made from, with types from the mapping and places from the provenance."""

from __future__ import annotations

from typing import Any, Literal

from waybill_documents.computed_values import compute
from waybill_documents.confidence import PROVED
from waybill_documents.corrections.scalars import LONGEST_TEXT, scalar
from waybill_documents.faults import FaultCode, Finding, MappingFault
from waybill_documents.geometry import Box, Place
from waybill_documents.hybrid import LINE_TYPES, TYPES
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import TableRule, ValueType
from waybill_documents.messages import DocumentMessage
from waybill_documents.sheets.cell_names import cells_box
from waybill_documents.values import Carry, Extracted, Row, Value

_MOST_PLACES = 1_000
_MOST_EMBEDDED_ROWS = 100_000
_NUMBERS = {int, float}


def read_record(loaded: LoadedMapping, record: dict[str, Any]) -> Extracted:
    """Everything that was read and computed, as it was before it became JSON.

    Raises `MappingFault` for a record that another mapping or another version of this one made, and for a record that
    does not fit the mapping.
    """
    extracted = read_values(loaded, record)
    if loaded.mapping.embedded is None:
        compute(loaded.mapping, extracted)  # computed values of the record are not trusted
        _overlay(loaded, record, extracted)
    return extracted


def read_values(loaded: LoadedMapping, record: dict[str, Any]) -> Extracted:
    """The values that were read, without the computed ones."""
    check_mapping(loaded, record)
    data, provenance = part(record, "data", dict), part(record, "provenance", dict)
    origins, tables = part(provenance, "fields", dict), part(provenance, "tables", dict)
    mapping = loaded.mapping
    if mapping.embedded is not None:
        types: dict[str, ValueType] = dict(TYPES)
        rows = {"lines": _embedded_rows(data, tables)}
        return Extracted({name: _value(data, origins, name, types[name], name) for name in types}, rows)
    return Extracted(
        {name: _value(data, origins, name, rule.type, name) for name, rule in mapping.fields.items()},
        {name: _rows(data, tables, name, rule) for name, rule in mapping.tables.items()},
        {name: _carries(each) for name, each in part(record, "carries", dict).items() if name in mapping.tables},
        _page_count(record),
    )


def check_mapping(loaded: LoadedMapping, record: dict[str, Any]) -> None:
    """Refuse a record of another mapping: a mapping that has changed may mean something else by the same names."""
    made_by = part(record, "mapping", dict)
    if made_by.get("name") != loaded.mapping.name:
        raise MappingFault(DocumentMessage("record.other_mapping", mapping=loaded.mapping.name))
    if made_by.get("sha256") != loaded.sha256:
        raise MappingFault(DocumentMessage("record.mapping_changed"))


def part(given: Any, name: str, type_: type) -> Any:
    """A required member of the record."""
    found = given.get(name) if isinstance(given, dict) else None
    if not isinstance(found, type_):
        raise MappingFault(DocumentMessage("record.incomplete", member=name))
    return found


def findings_of(given: Any) -> list[Finding]:
    """The findings of a record or of one of its checks."""
    if not isinstance(given, list):
        raise MappingFault(DocumentMessage("record.incomplete", member="findings"))
    return [_finding(each) for each in given]


def places_of(given: Any, path: str) -> tuple[Place, ...]:
    """The places of a list."""
    if not isinstance(given, list) or len(given) > _MOST_PLACES:
        raise MappingFault(DocumentMessage("record.no_place"), path)
    return tuple(_place(each, path) for each in given)


def _overlay(loaded: LoadedMapping, record: dict[str, Any], extracted: Extracted) -> None:
    """Take over the confidence that computed values had after the checks."""
    origins = record["provenance"]["fields"]
    for name in loaded.mapping.computed:
        _take_confidence(extracted.fields[name], origins.get(name), name)
    for table, rule in loaded.mapping.tables.items():
        for index, row in enumerate(extracted.tables[table]):
            its = record["provenance"]["tables"][table][index]
            for name in rule.computed:
                _take_confidence(row[name], its.get(name), f"{table}[{index}].{name}")


def _take_confidence(value: Value, origin: Any, path: str) -> None:
    if not isinstance(origin, dict):
        raise MappingFault(DocumentMessage("record.no_provenance"), path)
    value.confidence, value.unchecked = _confidence(origin, path), _unchecked(origin, path)


def _page_count(record: dict[str, Any]) -> int | None:
    source = part(record, "source", dict)
    pages = source.get("pages", source.get("sheets"))
    return len(pages) if isinstance(pages, list) else None


def _rows(data: dict[str, Any], tables: dict[str, Any], name: str, rule: TableRule) -> list[Row]:
    plain, origins = _both(data, tables, name, rule.max_rows)
    types: dict[str, ValueType] = dict.fromkeys(rule.notes, "text")
    types |= {column: its.type for column, its in rule.columns.items()}
    known = types.keys() | rule.computed.keys()
    both = {column: f"tables.{name}.notes.{column}" for column in rule.notes if column in rule.columns}
    rows: list[Row] = []
    for index, (cells, its) in enumerate(zip(plain, origins, strict=True)):
        if cells.keys() != its.keys() or not cells.keys() <= known:
            raise MappingFault(DocumentMessage("record.other_columns"), f"{name}[{index}]")
        row: Row = {}
        for column in cells:
            if column in types:
                as_note = column in both and isinstance(its[column], dict) and its[column].get("rule") == both[column]
                type_ = "text" if as_note else types[column]
                row[column] = _value(cells, its, column, type_, f"{name}[{index}].{column}")
        rows.append(row)
    return rows


def _embedded_rows(data: dict[str, Any], tables: dict[str, Any]) -> list[Row]:
    plain, origins = _both(data, tables, "lines", _MOST_EMBEDDED_ROWS)
    types: dict[str, ValueType] = dict(LINE_TYPES)
    return [
        {name: _value(cells, its, name, types[name], f"lines[{index}].{name}") for name in types}
        for index, (cells, its) in enumerate(zip(plain, origins, strict=True))
    ]


def _both(data: dict[str, Any], tables: dict[str, Any], name: str, most: int) -> tuple[list[Any], list[Any]]:
    """The rows of a table and their provenance."""
    plain, origins = part(data, name, list), part(tables, name, list)
    if len(plain) != len(origins) or len(plain) > most:
        raise MappingFault(DocumentMessage("record.other_rows"), name)
    if not all(isinstance(row, dict) for row in (*plain, *origins)):
        raise MappingFault(DocumentMessage("record.bad_rows"), name)
    return plain, origins


def _value(data: dict[str, Any], origins: dict[str, Any], name: str, type_: ValueType, path: str) -> Value:
    """One value. An invoice has thousands and a person is waiting, so this makes few calls and compares exact types."""
    origin = origins.get(name)
    if type(origin) is not dict or name not in data:
        raise MappingFault(DocumentMessage("record.no_value"), path)
    rule, raw = origin.get("rule"), origin.get("raw")
    if type(rule) is not str or type(raw) is not str or len(raw) > LONGEST_TEXT:
        raise MappingFault(DocumentMessage("record.no_rule"), path)
    places: tuple[Place, ...] = ()
    if "page" in origin or "cell" in origin:
        places = (_place(origin, path),)
        if "continues" in origin:
            places += places_of(origin["continues"], path)
    given = data[name]
    value = (
        given if type_ == "text" and type(given) is str and len(given) <= LONGEST_TEXT else scalar(given, type_, path)
    )
    most = _confidence(origin, path, "most") if "most" in origin else PROVED
    return Value(value, raw, rule, places, _confidence(origin, path), most, _unchecked(origin, path))


def _confidence(origin: dict[str, Any], path: str, name: str = "confidence") -> int:
    sure = origin.get(name)
    if type(sure) is not int or not 0 <= sure <= 100:
        raise MappingFault(DocumentMessage("record.bad_confidence"), path)
    return sure


def _unchecked(origin: dict[str, Any], path: str) -> int | None:
    return _confidence(origin, path, "unchecked") if "unchecked" in origin else None


def _place(given: Any, path: str) -> Place:
    if isinstance(given, dict) and "cell" in given:
        return _cells(given, path)
    page = given.get("page") if isinstance(given, dict) else None
    if type(page) is not int or page < 1:
        raise MappingFault(DocumentMessage("record.no_page"), path)
    return Place(page, _box(given.get("box"), path))


def _cells(given: dict[str, Any], path: str) -> Place:
    sheet, cell = given.get("sheet"), given["cell"]
    box = cells_box(cell) if type(cell) is str else None
    if type(sheet) is not int or sheet < 1 or box is None:
        raise MappingFault(DocumentMessage("record.bad_cell"), path)
    return Place(sheet, box, cell)


def _box(given: Any, path: str) -> Box:
    if not isinstance(given, list | tuple) or len(given) != 4 or not _NUMBERS.issuperset(map(type, given)):
        raise MappingFault(DocumentMessage("record.bad_box"), path)
    return tuple(given)


def _carries(given: Any) -> list[Carry]:
    if not isinstance(given, list) or len(given) > 2 * _MOST_PLACES:
        raise MappingFault(DocumentMessage("record.incomplete", member="carries"))
    return [_carry(each) for each in given]


def _carry(given: Any) -> Carry:
    place = _place(given, "carries")
    direction: Literal["out", "into"] = "out" if given.get("direction") == "out" else "into"
    amount = scalar(given.get("amount"), "decimal", "carries")
    after, raw = given.get("after_rows"), given.get("raw")
    if amount is None or not isinstance(after, int) or after < 0 or not isinstance(raw, str):
        raise MappingFault(DocumentMessage("record.bad_carry"), "carries")
    return Carry(place.page, direction, amount, after, place, raw)  # type: ignore[arg-type]  # a decimal, as asked


def _finding(given: Any) -> Finding:
    if not isinstance(given, dict) or not isinstance(given.get("message"), str):
        raise MappingFault(DocumentMessage("record.bad_finding"))
    path, rule, page, params = given.get("path"), given.get("rule"), given.get("page"), given.get("params", {})
    key = given.get("key")
    texts = all(text is None or isinstance(text, str) for text in (path, rule, key))
    if not texts or not (page is None or type(page) is int) or not isinstance(params, dict):
        raise MappingFault(DocumentMessage("record.bad_finding"))
    try:
        code = FaultCode(str(given.get("code")))
    except ValueError:
        raise MappingFault(DocumentMessage("record.bad_finding")) from None
    says = DocumentMessage.stored(given["message"], key, params)
    if "cell" in given:
        return Finding.at(_cells(given, "findings"), code, says, path, rule)
    box = _box(given["box"], "findings") if "box" in given else None
    return Finding(code, says, path, rule, page, box)

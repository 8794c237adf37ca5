"""A record back as the values it was made from: types from the mapping, places and confidence from the provenance."""

from __future__ import annotations

from typing import Any, Literal

from waybill_documents.computed_values import compute
from waybill_documents.confidence import PROVED
from waybill_documents.corrections.scalars import LONGEST_TEXT, scalar
from waybill_documents.faults import FaultCode, Finding, MappingFault
from waybill_documents.hybrid import LINE_TYPES, TYPES
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import TableRule, ValueType
from waybill_documents.values import Carry, Extracted, Row, Value
from waybill_documents.words import Box, Place

_MOST_PLACES = 1_000
_MOST_EMBEDDED_ROWS = 100_000
_NUMBERS = {int, float}


def read_record(loaded: LoadedMapping, record: dict[str, Any]) -> Extracted:
    """Everything that was read and computed, as it was before it became JSON.

    Raises `MappingFault` for a record that another mapping made, or another version of this one, and for one that
    does not fit the mapping.
    """
    extracted = read_values(loaded, record)
    if loaded.mapping.embedded is None:
        compute(loaded.mapping, extracted)  # computed values are never believed but made anew
        _overlay(loaded, record, extracted)
    return extracted


def read_values(loaded: LoadedMapping, record: dict[str, Any]) -> Extracted:
    """What was read, without what was computed."""
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
    """A mapping that has changed may mean something else by the same names."""
    made_by = part(record, "mapping", dict)
    if made_by.get("name") != loaded.mapping.name:
        raise MappingFault(f"The record was made by another mapping than '{loaded.mapping.name}'.")
    if made_by.get("sha256") != loaded.sha256:
        raise MappingFault("The mapping has changed since this was converted. Convert it again to correct it.")


def part(given: Any, name: str, type_: type) -> Any:
    """A part of the record that must be there."""
    found = given.get(name) if isinstance(given, dict) else None
    if not isinstance(found, type_):
        raise MappingFault(f"the record has no '{name}'")
    return found


def findings_of(given: Any) -> list[Finding]:
    """The findings of a record or of one of its checks."""
    if not isinstance(given, list):
        raise MappingFault("the record has no 'findings'")
    return [_finding(each) for each in given]


def places_of(given: Any, path: str) -> tuple[Place, ...]:
    """The places of a list."""
    if not isinstance(given, list) or len(given) > _MOST_PLACES:
        raise MappingFault("the record does not say where it stands", path)
    return tuple(_place(each, path) for each in given)


def _overlay(loaded: LoadedMapping, record: dict[str, Any], extracted: Extracted) -> None:
    """How sure the computed values were, after the checks had looked at them."""
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
        raise MappingFault("the record does not say where it came from", path)
    value.confidence, value.unchecked = _confidence(origin, path), _unchecked(origin, path)


def _page_count(record: dict[str, Any]) -> int | None:
    pages = part(record, "source", dict).get("pages")
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
            raise MappingFault("the record has other columns than the mapping", f"{name}[{index}]")
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
    """The rows of a table, and where they came from."""
    plain, origins = part(data, name, list), part(tables, name, list)
    if len(plain) != len(origins) or len(plain) > most:
        raise MappingFault("the record has other rows than it says where they came from, or too many", name)
    if not all(isinstance(row, dict) for row in (*plain, *origins)):
        raise MappingFault("the record has rows that are none", name)
    return plain, origins


def _value(data: dict[str, Any], origins: dict[str, Any], name: str, type_: ValueType, path: str) -> Value:
    """One value. An invoice has thousands, and a person waits while they type: hence few calls and exact types."""
    origin = origins.get(name)
    if type(origin) is not dict or name not in data:
        raise MappingFault("the record does not have it, or does not say where it came from", path)
    rule, raw = origin.get("rule"), origin.get("raw")
    if type(rule) is not str or type(raw) is not str or len(raw) > LONGEST_TEXT:
        raise MappingFault("the record does not say which rule found it", path)
    places: tuple[Place, ...] = ()
    if "page" in origin:
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
        raise MappingFault("a confidence is a whole number from 0 to 100", path)
    return sure


def _unchecked(origin: dict[str, Any], path: str) -> int | None:
    return _confidence(origin, path, "unchecked") if "unchecked" in origin else None


def _place(given: Any, path: str) -> Place:
    page = given.get("page") if isinstance(given, dict) else None
    if type(page) is not int or page < 1:
        raise MappingFault("the record does not say on which page it stands", path)
    return Place(page, _box(given.get("box"), path))


def _box(given: Any, path: str) -> Box:
    if not isinstance(given, list | tuple) or len(given) != 4 or not {*map(type, given)} <= _NUMBERS:
        raise MappingFault("a box has four numbers", path)
    left, top, right, bottom = given
    return left, top, right, bottom


def _carries(given: Any) -> list[Carry]:
    if not isinstance(given, list) or len(given) > 2 * _MOST_PLACES:
        raise MappingFault("the record has no 'carries'")
    return [_carry(each) for each in given]


def _carry(given: Any) -> Carry:
    place = _place(given, "carries")
    direction: Literal["out", "into"] = "out" if given.get("direction") == "out" else "into"
    amount = scalar(given.get("amount"), "decimal", "carries")
    after, raw = given.get("after_rows"), given.get("raw")
    if amount is None or not isinstance(after, int) or after < 0 or not isinstance(raw, str):
        raise MappingFault("the record has a sum carried over that is none", "carries")
    return Carry(place.page, direction, amount, after, place, raw)  # type: ignore[arg-type]  # a decimal, as asked


def _finding(given: Any) -> Finding:
    if not isinstance(given, dict) or not isinstance(given.get("message"), str):
        raise MappingFault("the record has a finding that is none")
    path, rule, page, params = given.get("path"), given.get("rule"), given.get("page"), given.get("params", {})
    texts = all(text is None or isinstance(text, str) for text in (path, rule))
    if not texts or not (page is None or type(page) is int) or not isinstance(params, dict):
        raise MappingFault("the record has a finding that is none")
    try:
        code = FaultCode(str(given.get("code")))
    except ValueError:
        raise MappingFault("the record has a finding that is none") from None
    box = _box(given["box"], "findings") if "box" in given else None
    return Finding(code, given["message"], path, rule, page, box, params)

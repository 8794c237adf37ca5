"""Loading a mapping: read, checked against the schema and against itself, and named by its hash.

A mapping that loads has no unknown names, no broken pattern and no schema that is not there: what is wrong with a
mapping is found when it is loaded and never while a document is being read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path, PurePath
from typing import Any

import re2
from pydantic import ValidationError

from waybill_documents.catalogue import FILE, folder, names
from waybill_documents.expressions.names import check_names
from waybill_documents.faults import MappingFault
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.mistakes import mistakes
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping
from waybill_documents.precision import too_precise
from waybill_documents.value_text import Unreadable, read
from waybill_documents.xml_output import XmlSchema, check_tree, load_schema

_MOST_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class LoadedMapping:
    """A mapping that is fit to be used."""

    mapping: Mapping
    sha256: str
    schema: XmlSchema | None


def load(beside: Path | Traversable, name: str = FILE) -> LoadedMapping:
    """The mapping in a folder; the XSD it names lies beside it."""
    try:
        content = (beside / name).read_bytes()
    except OSError as error:
        raise MappingFault(f"'{name}' cannot be read: {error.strerror}") from error
    mapping = parse(content)
    schema = _schema(beside, mapping.xml.xsd) if mapping.xml is not None and mapping.xml.xsd is not None else None
    return LoadedMapping(mapping, hashlib.sha256(content).hexdigest(), schema)


def _schema(folder: Path | Traversable, name: str) -> XmlSchema:
    if PurePath(name).name != name or not (folder / name).is_file():
        raise MappingFault(f"there is no file '{name}' beside the mapping", "xml.xsd")
    return load_schema((folder / name).read_bytes(), folder, name)


def parse(content: bytes) -> Mapping:
    """The mapping in this JSON text. Raises `MappingFault`, which says where and what is wrong."""
    if len(content) > _MOST_BYTES:
        raise MappingFault(f"the file is larger than {_MOST_BYTES:,} bytes")
    try:
        # Numbers with a fraction would be floats; the language has none, so they are refused by the schema.
        document = json.loads(content, parse_float=Decimal, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as error:
        raise MappingFault(f"this is not JSON: {error}") from error
    if isinstance(document, dict):
        document.pop("$schema", None)  # for editors, which offer completions by it
    try:
        mapping = Mapping.model_validate(document)
    except ValidationError as error:
        raise mistakes(error) from error
    for where, pattern in _patterns(mapping):
        _check_pattern(where, pattern)
    _check_references(mapping)
    check_names(mapping)
    check_tree(mapping)
    return mapping


@cache
def shipped(name: str) -> LoadedMapping | None:
    """A shipped mapping by its name; none if there is none. Only listed names are ever made into a path."""
    return load(folder() / name) if name in names() else None


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"'{name}' is there twice")
        found[name] = value
    return found


def _patterns(mapping: Mapping) -> Iterator[tuple[str, str]]:
    for name, field in mapping.fields.items():
        if field.pattern:
            yield f"fields.{name}.pattern", field.pattern
    for name, table in mapping.tables.items():
        if table.row.pattern:
            yield f"tables.{name}.row.pattern", table.row.pattern
        for column, rule in table.columns.items():
            if rule.pattern:
                yield f"tables.{name}.columns.{column}.pattern", rule.pattern
        for note, pattern in table.notes.items():
            yield f"tables.{name}.notes.{note}", pattern


def _check_pattern(where: str, pattern: str) -> None:
    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        raise MappingFault(f"the pattern cannot be used: {_decoded(error)}", where) from error


@cache
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # it would write to the terminal as well
    return options


def _decoded(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode() if isinstance(said, bytes) else str(said)


def _check_references(mapping: Mapping) -> None:
    """What the schema cannot see: names that refer to each other, and defaults that are not of their type."""
    locale = locale_rules(mapping.locale)
    for name, field in mapping.fields.items():
        for fixed in (field.constant, field.default):
            _check_fixed(f"fields.{name}", fixed, field, locale)
    for name, table in mapping.tables.items():
        where = f"tables.{name}"
        if name in mapping.fields or name in mapping.computed:
            raise MappingFault(f"'{name}' is also the name of a field or a computed value", where)
        for column, rule in table.columns.items():
            _check_fixed(f"{where}.columns.{column}", rule.default, rule, locale)
            if rule.header is None and table.row.pattern is None:
                raise MappingFault("a column needs its header's words", f"{where}.columns.{column}.header")
        if table.row.begins is not None and table.row.begins not in table.columns:
            raise MappingFault(f"there is no column '{table.row.begins}'", f"{where}.row.begins")
        if table.row.pattern is not None:
            unknown = set(re2.compile(table.row.pattern).groupindex) - set(table.columns)
            if unknown:
                raise MappingFault(f"there is no column '{min(unknown)}'", f"{where}.row.pattern")
        if table.carry is not None and table.carry.column not in table.columns:
            raise MappingFault(f"there is no column '{table.carry.column}'", f"{where}.carry.column")
    _check_titles(mapping)
    if mapping.embedded is not None and (mapping.fields or mapping.tables or mapping.xml or mapping.checks):
        raise MappingFault(
            "an embedded invoice has its own fields: leave out fields, tables, checks and xml", "embedded"
        )


def _check_titles(mapping: Mapping) -> None:
    known = {*mapping.fields, *mapping.tables, *mapping.computed, *(f"checks.{name}" for name in mapping.checks)}
    for name, table in mapping.tables.items():
        known |= {f"{name}.{column}" for column in (*table.columns, *table.notes, *table.computed)}
    for path in mapping.titles:
        if path not in known and mapping.embedded is None:
            raise MappingFault("there is nothing of this name that could have a title", f"titles.{path}")


def _check_fixed(where: str, fixed: str | None, rule: FieldRule | ColumnRule, locale: LocaleRules) -> None:
    if fixed is None:
        return
    try:
        value = read(fixed, rule.type, locale)
    except Unreadable as error:
        raise MappingFault(str(error), where) from error
    if why := too_precise(value, rule.decimals):
        raise MappingFault(f"'{fixed}' {why}", where)

"""Loads a mapping: reads it, checks it against the schema and for contradictions, and identifies it by its hash.

A mapping that loads has no unknown names, no broken patterns and no missing schema. Mistakes in a mapping are found
when it is loaded and never while a document is being read.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from pathlib import PurePath
from typing import Any, Literal

import re2
from pydantic import ValidationError

from waybill_documents.catalogue import AUTO, EARLIER, FILE, folder, names
from waybill_documents.expressions.names import check_names
from waybill_documents.faults import MappingFault
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.mistakes import mistakes
from waybill_documents.mapping.model import ColumnRule, FieldRule, Mapping, TableRule
from waybill_documents.mapping_files import MappingPlace
from waybill_documents.messages import DocumentMessage, Mistake
from waybill_documents.precision import too_precise
from waybill_documents.text_lines import fold
from waybill_documents.value_text import Unreadable, read
from waybill_documents.xml_output import XmlSchema, check_tree, load_schema

_MOST_BYTES = 1_000_000
_VERSIONED = re.compile(r"_v[1-9][0-9]*$")


LossRule = Literal["strict", "lenient"]
"""What becomes of details of an e-invoice that have no place in the result: it is refused, or they are dropped."""


@dataclass(frozen=True, slots=True)
class LoadedMapping:
    """A valid mapping, with its hash and its schema."""

    mapping: Mapping
    sha256: str
    schema: XmlSchema | None

    def with_loss(self, loss: LossRule) -> LoadedMapping:
        """The same mapping with another choice of what becomes of details that have no place in the result."""
        if self.mapping.embedded is None:
            raise MappingFault(DocumentMessage("mapping.loss_without_embedded", mapping=self.mapping.name))
        rule = self.mapping.embedded.model_copy(update={"loss": loss})
        return replace(self, mapping=self.mapping.model_copy(update={"embedded": rule}))


def load(beside: MappingPlace, name: str = FILE) -> LoadedMapping:
    """Load the mapping in a folder. Its XSD must be in the same folder."""
    try:
        content = (beside / name).read_bytes()
    except OSError as error:
        raise MappingFault(DocumentMessage("mapping.file_unreadable", name=name, detail=error.strerror)) from error
    return _loaded(beside, content)


def _loaded(beside: MappingPlace, content: bytes) -> LoadedMapping:
    mapping = parse(content)
    schema = _schema(beside, mapping.xml.xsd) if mapping.xml is not None and mapping.xml.xsd is not None else None
    return LoadedMapping(mapping, _hash(content), schema)


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _schema(folder: MappingPlace, name: str) -> XmlSchema:
    if PurePath(name).name != name or not (folder / name).is_file():
        raise MappingFault(DocumentMessage("mapping.schema.missing", name=name), "xml.xsd")
    return load_schema((folder / name).read_bytes(), folder, name)


def parse(content: bytes) -> Mapping:
    """Parse a mapping. Raises `MappingFault`, which says what is wrong and where."""
    if len(content) > _MOST_BYTES:
        raise MappingFault(DocumentMessage("mapping.file_too_large", most=_MOST_BYTES))
    try:
        # The language has no floats; as decimals, they are refused by the schema.
        document = json.loads(content, parse_float=Decimal, object_pairs_hook=_object)
    except Mistake as mistake:
        raise MappingFault(mistake.says) from mistake
    except (ValueError, RecursionError) as error:
        raise MappingFault(DocumentMessage("mapping.not_json", detail=str(error))) from error
    if isinstance(document, dict):
        document.pop("$schema", None)  # for editors
    try:
        mapping = Mapping.model_validate(document)
    except ValidationError as error:
        raise mistakes(error) from error
    if mapping.name == AUTO:
        raise MappingFault(DocumentMessage("mapping.named_auto", name=AUTO), "name")
    if mapping.embedded is None and not _VERSIONED.search(mapping.name):
        raise MappingFault(DocumentMessage("mapping.no_version", name=mapping.name), "name")
    for where, pattern in _patterns(mapping):
        _check_pattern(where, pattern)
    _check_recognition(mapping)
    _check_references(mapping)
    check_names(mapping)
    check_tree(mapping)
    return mapping


@cache
def shipped(name: str) -> LoadedMapping | None:
    """A shipped mapping by its name, or None. Only listed names ever become part of a path."""
    return load(folder() / name) if name in names() else None


@cache
def shipped_as(name: str, sha256: str) -> LoadedMapping | None:
    """A shipped mapping with this hash: the current one, or what an earlier release had under the name."""
    current = shipped(name)
    if current is None or current.sha256 == sha256:
        return current
    earlier = folder() / name / EARLIER
    texts = [each.name for each in earlier.iterdir()] if earlier.is_dir() else []
    found = next((text for text in texts if _hash((earlier / text).read_bytes()) == sha256), None)
    return _loaded(folder() / name, (earlier / found).read_bytes()) if found is not None else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object without duplicates, whose texts can be stored and shown."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if not (_is_storable(name) and _is_storable(value)):
            raise Mistake(DocumentMessage("mapping.bad_characters"))
        if name in found:
            raise Mistake(DocumentMessage("mapping.key_twice", name=name))
        found[name] = value
    return found


def _is_storable(value: Any) -> bool:
    """Whether all texts are UTF-8 without NUL. Escapes in JSON can make others, and no database takes those."""
    if isinstance(value, list):
        return all(map(_is_storable, value))
    return not isinstance(value, str) or ("\0" not in value and value == value.encode(errors="ignore").decode())


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
        for note, its in table.notes.items():
            yield f"tables.{name}.notes.{note}", its.pattern


def _check_pattern(where: str, pattern: str) -> None:
    try:
        re2.compile(pattern, _options())
    except re2.error as error:
        raise MappingFault(DocumentMessage("mapping.pattern_not_re2", detail=_decoded(error)), where) from error


@cache
def _options() -> Any:
    options = re2.Options()
    options.log_errors = False  # otherwise RE2 writes errors to the terminal
    return options


def _decoded(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode() if isinstance(said, bytes) else str(said)


def _check_recognition(mapping: Mapping) -> None:
    for phrase in (*mapping.recognise.all, *mapping.recognise.any, *mapping.recognise.none):
        if not fold(phrase):
            raise MappingFault(DocumentMessage("mapping.phrase_without_letters", phrase=phrase), "recognise")


def _check_references(mapping: Mapping) -> None:
    """Check what the schema cannot: references between names, and the types of defaults."""
    locale = locale_rules(mapping.locale)
    for name, field in mapping.fields.items():
        for fixed in (field.constant, field.default):
            _check_fixed(f"fields.{name}", fixed, field, locale)
    for name, table in mapping.tables.items():
        where = f"tables.{name}"
        if name in mapping.fields or name in mapping.computed:
            raise MappingFault(DocumentMessage("mapping.table_name_taken", name=name), where)
        for column, rule in table.columns.items():
            _check_fixed(f"{where}.columns.{column}", rule.default, rule, locale)
            _check_place(f"{where}.columns.{column}", rule, table)
        if table.row.begins is not None and table.row.begins not in table.columns:
            raise MappingFault(DocumentMessage("mapping.unknown_column", name=table.row.begins), f"{where}.row.begins")
        if table.row.pattern is not None:
            unknown = set(re2.compile(table.row.pattern).groupindex) - set(table.columns)
            if unknown:
                raise MappingFault(DocumentMessage("mapping.unknown_column", name=min(unknown)), f"{where}.row.pattern")
        if table.carry is not None and table.carry.column not in table.columns:
            raise MappingFault(
                DocumentMessage("mapping.unknown_column", name=table.carry.column), f"{where}.carry.column"
            )
    _check_titles(mapping)
    if mapping.embedded is not None and (mapping.fields or mapping.tables or mapping.xml or mapping.checks):
        raise MappingFault(DocumentMessage("mapping.embedded_with_fields"), "embedded")


def _check_place(where: str, rule: ColumnRule, table: TableRule) -> None:
    """A column has a header, or is beside one that has, unless the rows match a pattern."""
    beside = rule.after or rule.before
    if beside is None:
        if rule.header is None and table.row.pattern is None:
            raise MappingFault(DocumentMessage("mapping.no_header"), f"{where}.header")
        return
    key = f"{where}.{'after' if rule.after else 'before'}"
    if beside not in table.columns:
        raise MappingFault(DocumentMessage("mapping.unknown_column", name=beside), key)
    if table.columns[beside].header is None or table.row.pattern is not None:
        raise MappingFault(DocumentMessage("mapping.neighbour_without_header", name=beside), key)
    # One column on each side of a header: which of two would be the nearer one?
    same = [name for name, its in table.columns.items() if (its.after, its.before) == (rule.after, rule.before)]
    if len(same) > 1:
        raise MappingFault(DocumentMessage("mapping.neighbours", names=", ".join(same)), key)


def _check_titles(mapping: Mapping) -> None:
    known = {*mapping.fields, *mapping.tables, *mapping.computed, *(f"checks.{name}" for name in mapping.checks)}
    for name, table in mapping.tables.items():
        known |= {f"{name}.{column}" for column in (*table.columns, *table.notes, *table.computed)}
    for path in mapping.titles:
        if path not in known and mapping.embedded is None:
            raise MappingFault(DocumentMessage("mapping.title_of_nothing"), f"titles.{path}")


def _check_fixed(where: str, fixed: str | None, rule: FieldRule | ColumnRule, locale: LocaleRules) -> None:
    if fixed is None:
        return
    try:
        value = read(fixed, rule.type, locale)
    except Unreadable as error:
        raise MappingFault(error.says, where) from error
    if why := too_precise(value, rule.decimals, fixed):
        raise MappingFault(why, where)

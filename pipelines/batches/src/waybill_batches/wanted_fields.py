"""The fields that a language model is to fill in each file: a JSON Schema that came with the batch.

The schema comes from outside, and so does what it is applied to. So it has to be small, it refers only to its own
definitions and never to itself, and its patterns are run by an engine whose time is linear.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, cast

import re2
from jsonschema import Draft7Validator, Draft201909Validator, Draft202012Validator, FormatChecker
from jsonschema.exceptions import SchemaError, ValidationError, best_match
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from waybill.errors import Refused
from waybill.messages import msg
from waybill.pg_text import is_storable

_MOST_BYTES = 16 * 1024
_DEEPEST = 24
_MOST_PARTS = 500
"""Subschemas, each counted as often as it is referred to: a few short definitions can stand for millions of them."""
_LONGEST_REASON = 300
_FORMATS = ("date", "email", "ipv4", "ipv6", "uuid")
"""Formats that are checked, in constant or linear time. Others are a hint to the model and nothing more."""

_ONE = (
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
)
_LISTS = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_BY_NAME = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
_UNUSABLE = ("$anchor", "$dynamicAnchor", "$dynamicRef", "$id", "$recursiveAnchor", "$recursiveRef", "$vocabulary")
"""They give names to schemas or look for them elsewhere, which no list of fields needs."""
_DEFINITIONS = ("#/$defs/", "#/definitions/")


@dataclass(frozen=True, slots=True)
class WantedFields:
    schema: Mapping[str, Any]

    @classmethod
    def parse(cls, text: str) -> WantedFields | None:
        """The schema in a form's field; None if it is empty. Raises Refused if it cannot be used."""
        if not text.strip():
            return None
        try:
            found = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
        except (ValueError, RecursionError):
            raise Refused(msg("batches.schema.form")) from None
        if not isinstance(found, dict) or len(text.encode("utf-8", "replace")) > _MOST_BYTES:
            raise Refused(msg("batches.schema.form"))
        if _depth(found) > _DEEPEST:
            raise Refused(msg("batches.schema.too_deep", number=_DEEPEST))
        if not all(map(is_storable, _texts(found))):
            raise Refused(msg("batches.schema.form"))
        _check(found)
        return cls(found)

    @property
    def digest(self) -> str:
        """Says which schema it is, in the name of what makes results."""
        text = json.dumps(self.schema, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def names(self) -> list[str]:
        return list(self.schema["properties"])

    def work(self, answer: Any) -> int:
        """How many comparisons checking an answer may take at most."""
        return sum(1 for _ in _parts(self.schema, self.schema, ())) * sum(1 for _ in _values(answer))

    def misfit(self, answer: Any) -> str | None:
        """Why an answer does not fit, for the model and for people; None if it does."""
        validator = _validator_class(self.schema)(self.schema, format_checker=FormatChecker(_FORMATS))
        try:
            error = best_match(validator.iter_errors(answer))
        except RecursionError:
            return "it is nested too deeply"
        except ArithmeticError:  # a number beyond what `multipleOf` can be computed with
            return "it has a number that cannot be checked"
        if error is None:
            return None
        place = "/".join(str(part) for part in error.absolute_path)
        return f"{place or 'the answer'}: {error.message}"[:_LONGEST_REASON]


def misfit_of(schema: dict[str, Any], answer: Any) -> str | None:
    """The same for a process of its own, where a check that takes long delays nobody."""
    return WantedFields(schema).misfit(answer)


def _check(schema: dict[str, Any]) -> None:
    draft = _validator_class(schema)
    try:
        draft.check_schema(schema)
        for definition in _definitions(schema):  # not every draft knows both places, and both can be referred to
            draft.check_schema(definition)
    except SchemaError as error:
        place = "/".join(str(part) for part in error.absolute_path)
        why = f"{place}: {error.message}" if place else error.message
        raise Refused(msg("batches.schema.invalid", why=why[:_LONGEST_REASON])) from None
    except RecursionError:
        raise Refused(msg("batches.schema.too_deep", number=_DEEPEST)) from None
    if schema.get("type") != "object" or not schema.get("properties"):
        raise Refused(msg("batches.schema.no_fields"))
    for number, part in enumerate(_parts(schema, schema, ())):
        if number >= _MOST_PARTS:
            raise Refused(msg("batches.schema.too_large", number=_MOST_PARTS))
        for keyword in _UNUSABLE:
            if keyword in part:
                raise Refused(msg("batches.schema.keyword", keyword=keyword))
        for pattern in (part.get("pattern"), *part.get("patternProperties", ())):
            if pattern is not None:
                _check_pattern(str(pattern))


def _parts(schema: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """Every subschema, with those that are referred to in the place of the reference."""
    if not isinstance(schema, dict):  # `true` and `false` are schemas, too
        return
    yield schema
    reference = schema.get("$ref")
    if reference is not None:
        yield from _parts(_referred(reference, root, inside), root, (*inside, str(reference)))
    for keyword in _ONE:
        yield from _parts(schema.get(keyword), root, inside)
    for keyword in _LISTS:
        listed = schema.get(keyword)
        for each in listed if isinstance(listed, list) else ():
            yield from _parts(each, root, inside)
    for keyword in _BY_NAME:
        named = schema.get(keyword)
        for each in named.values() if isinstance(named, dict) else ():
            yield from _parts(each, root, inside)


def _definitions(schema: Mapping[str, Any]) -> Iterator[Any]:
    for prefix in _DEFINITIONS:
        named = schema.get(prefix.strip("#/"), {})
        yield from named.values() if isinstance(named, dict) else [named]


def _referred(reference: Any, root: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    """The definition that a reference means. One that leads back to where it is would be checked for ever."""
    for prefix in _DEFINITIONS:
        name = str(reference).removeprefix(prefix)
        definitions = root.get(prefix.strip("#/"))
        if str(reference).startswith(prefix) and isinstance(definitions, dict) and name in definitions:
            if reference in inside:
                raise Refused(msg("batches.schema.recursive", reference=str(reference)[:_LONGEST_REASON]))
            return definitions[name]
    raise Refused(msg("batches.schema.reference", reference=str(reference)[:_LONGEST_REASON]))


def _check_pattern(pattern: str) -> None:
    try:
        _compiled(pattern)
    except re2.error:
        raise Refused(msg("batches.schema.pattern", pattern=pattern[:_LONGEST_REASON])) from None


def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1024 * 1024
    return re2.compile(pattern, options)


def _validator_class(schema: Mapping[str, Any]) -> type[Validator]:
    """By the draft that the schema names; the latest if it names none."""
    named = str(schema.get("$schema", "")).rstrip("#")
    found = _validator_classes().get(named)
    if found is None:
        raise Refused(msg("batches.schema.draft", draft=named[:_LONGEST_REASON]))
    return found


@cache
def _validator_classes() -> Mapping[str, type[Validator]]:
    latest = _ours(Draft202012Validator)
    return {
        "": latest,
        "https://json-schema.org/draft/2020-12/schema": latest,
        "https://json-schema.org/draft/2019-09/schema": _ours(Draft201909Validator),
        "http://json-schema.org/draft-07/schema": _ours(Draft7Validator),
    }


def _ours(draft: type[Validator]) -> type[Validator]:
    """A draft as the library has it, with keywords that take linear time."""
    keywords = {"pattern": _pattern, "patternProperties": _pattern_properties, "uniqueItems": _unique_items}
    return cast("type[Validator]", extend(draft, keywords))  # type: ignore[no-untyped-call]


def _pattern(_validator: Any, pattern: str, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(value, str) and not _compiled(pattern).search(value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: Any, value: Any, _schema: Any) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for pattern, schema in patterns.items():
        compiled = _compiled(pattern)
        for name, member in value.items():
            if compiled.search(name):
                yield from validator.descend(member, schema, path=name, schema_path=pattern)


def _unique_items(_validator: Any, wanted: bool, value: Any, _schema: Any) -> Iterator[ValidationError]:
    """The library compares every item with every other one."""
    if wanted and isinstance(value, list) and len({json.dumps(item, sort_keys=True) for item in value}) < len(value):
        yield ValidationError("it has an item twice")


def _no_constant(name: str) -> Any:
    raise ValueError(name)  # NaN and Infinity are no JSON


def _finite(digits: str) -> float:
    """A number that is beyond all others becomes infinite, which Postgres does not take for JSON."""
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError(digits)
    return found


def _depth(value: Any) -> int:
    """How deep a value is nested, without recursion."""
    deepest, level = 0, [value]
    while level:
        deepest += 1
        level = [
            member
            for each in level
            for member in (each.values() if isinstance(each, dict) else each if isinstance(each, list) else ())
        ]
    return deepest


def _values(value: Any) -> Iterator[Any]:
    """The values that a value consists of, itself included, without recursion."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        yield each
        if isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list):
            waiting.extend(each)


def _texts(value: Any) -> Iterator[str]:
    """All texts in a value, names of members included."""
    for each in _values(value):
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            yield from each

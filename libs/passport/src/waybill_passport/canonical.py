"""JSON as exact values, and as canonical bytes (RFC 8785).

Canonical JSON writes numbers as a computer's floats would come out, and decimals do not survive that: 0.1 has no float.
So JSON is read into integers and decimals, never into floats, and our own documents write decimals as strings. A value
that would be a float is refused, and the refusal names where it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import rfc8785

LARGEST = 2**53 - 1
"""The largest integer that every reader of JSON understands."""
_DEEPEST = 100
_MOST_DIGITS = 1000

Json = Any
"""None, bool, int, str, Decimal (only as it was read), a list of these, or a dict of them by str."""


class NotCanonical(ValueError):
    """A value has no canonical form. `path` says where: `$.cells[3].weight`."""

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path
        self.why = why


def read(text: str | bytes) -> Json:
    """The exact value of a JSON text. NotCanonical if it is none, or says something twice."""
    try:
        return json.loads(
            text,
            parse_float=_decimal,
            parse_int=_integer,
            parse_constant=_constant,
            object_pairs_hook=_object,
        )
    except NotCanonical:
        raise
    except RecursionError:
        raise NotCanonical("$", "it is nested too deeply") from None
    except (ValueError, UnicodeDecodeError) as error:
        raise NotCanonical("$", f"it is not JSON: {error}") from None


def canonical(value: Json) -> bytes:
    """The one way to write a value. NotCanonical for floats and decimals, large integers, and texts that are none."""
    check(value)
    return rfc8785.dumps(value)


def check(value: Json, path: str = "$", depth: int = 0) -> None:
    """Raises NotCanonical unless the value can be written canonically."""
    if depth > _DEEPEST:
        raise NotCanonical(path, f"it is nested deeper than {_DEEPEST} levels")
    if value is None or isinstance(value, bool):
        return
    if isinstance(value, str):
        _check_text(value, path)
    elif isinstance(value, int):
        if abs(value) > LARGEST:
            raise NotCanonical(path, "the number is too large; write it as text")
    elif isinstance(value, float | Decimal):
        raise NotCanonical(path, "numbers with decimals have no exact form; write it as text")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                raise NotCanonical(path, f"a key is no text: {key!r}")
            _check_text(key, path)
            check(each, f"{path}.{key}", depth + 1)
    elif isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        for index, each in enumerate(value):
            check(each, f"{path}[{index}]", depth + 1)
    else:
        raise NotCanonical(path, f"{type(value).__name__} is not JSON")


def exact(value: Json) -> Json:
    """The value with decimals written as texts, with all the digits they were read with."""
    if isinstance(value, Decimal):
        return decimal_text(value)
    if isinstance(value, Mapping):
        return {key: exact(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return [exact(each) for each in value]
    return value


def decimal_text(value: Decimal) -> str:
    """A decimal without an exponent, and with no digit gained or lost: `12.340`."""
    return f"{value:f}"


def _check_text(text: str, path: str) -> None:
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise NotCanonical(path, "the text has half a character in it")


def _decimal(text: str) -> Decimal:
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa) > _MOST_DIGITS or (exponent and abs(int(exponent)) > _MOST_DIGITS):
        raise NotCanonical("$", f"the number {text[:30]}… has too many digits")
    return Decimal(text)


def _integer(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise NotCanonical("$", f"the number {text[:30]}… has too many digits")
    return int(text)


def _constant(text: str) -> Json:
    raise NotCanonical("$", f"{text} is not JSON")


def _object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for key, value in pairs:
        if key in found:
            raise NotCanonical("$", f"the key {key!r} comes twice in one object")
        found[key] = value
    return found

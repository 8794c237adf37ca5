"""Reading the configuration at start-up: all of it at once, or every problem with it.

The first thing a process does; logging is not set up yet, so this speaks plainly on standard error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import NoReturn, TypeVar, get_args

from pydantic import SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from waybill.config.settings import SETTINGS, ProcessSettings
from waybill.config.sources import PREFIX, bare_name, given_variables, variable
from waybill.config.storage_url import StorageUrl
from waybill.config.values import DatabaseUrl
from waybill.redaction import redact_text

S = TypeVar("S", bound=ProcessSettings)

# Pydantic's sentences are about Python; ours are about a line in somebody's environment.
_SENTENCES = {
    "greater_than_equal": "must be at least {ge:g}",
    "greater_than": "must be more than {gt:g}",
    "less_than_equal": "must be at most {le:g}",
    "less_than": "must be less than {lt:g}",
    "int_parsing": "must be a whole number",
    "int_parsing_size": "must be a smaller number",
    "int_from_float": "must be a whole number",
    "int_type": "must be a whole number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "finite_number": "must be a finite number",
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "literal_error": "must be one of {expected}",
    "string_too_short": "must not be empty",
    "too_short": "must name at least {min_length}",
}


def load(settings: type[S]) -> S:
    """The settings from the environment and `.env`; with any problem, print them all and exit with 2."""
    try:
        loaded = settings()
        given = given_variables(settings)
    except ValidationError as error:
        _refuse(problems(settings, error))
    except (OSError, UnicodeDecodeError) as error:
        _refuse([f".env: cannot be read ({error})"])
    for sentence in misspelled(given):
        sys.stderr.write(f"warning: {sentence}\n")
    return loaded


def problems(settings: type[ProcessSettings], error: ValidationError) -> list[str]:
    """One line for each thing that is wrong, naming the variable it was given in, never showing a secret."""
    given = given_variables(settings)
    lines = [
        _problem(settings, detail, given)
        for detail in error.errors(include_url=False)
        # A default that depends on another field that is wrong itself: one line for it is enough.
        if detail["type"] != "default_factory_not_called"
    ]
    return lines + misspelled(given)


def misspelled(given: Iterable[str]) -> list[str]:
    """A sentence for each `WAYBILL_…` name that looks like a slip of the pen."""
    known = {variable(name) for settings in SETTINGS for name in settings.model_fields}
    sentences = []
    for name in sorted(given):
        # WAYBILL_TEST_… belongs to the test suite, where WAYBILL_TEST_DATABASE_URL is meant.
        if not name.startswith(PREFIX) or name in known or name.startswith(f"{PREFIX}TEST_"):
            continue
        if meant := _closest(name, known):
            sentences.append(f"{name}: no such setting; did you mean {meant}?")
    return sentences


def _closest(name: str, known: Iterable[str]) -> str | None:
    # Compared without the prefix, which would make any two names look alike.
    plain = [each.removeprefix(PREFIX) for each in known]
    matches = get_close_matches(name.removeprefix(PREFIX), plain, n=1, cutoff=0.8)
    return PREFIX + matches[0] if matches else None


def _refuse(lines: Iterable[str]) -> NoReturn:
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    raise SystemExit(2)


def _problem(settings: type[ProcessSettings], detail: ErrorDetails, given: Mapping[str, str]) -> str:
    field_name = str(detail["loc"][0]) if detail["loc"] else ""
    field = settings.model_fields.get(field_name)
    if field is None:
        return redact_text(detail["msg"])
    name = variable(field_name)
    bare = bare_name(field)
    if bare and bare in given and name not in given:
        name = bare
    if detail["type"] == "missing":
        example = f", for example {field.examples[0]}" if field.examples else ""
        return f"{name}: is not set and has no default{example}"
    sentence = _SENTENCES.get(detail["type"], detail["msg"]).format(**detail.get("ctx", {}))
    if _is_secret(field):
        return f"{name}: {sentence}"
    # What the person wrote, not what we made of it.
    got = _shown(given[name]) if name in given else f"{_shown(detail['input'])}, its default"
    return f"{name}: {sentence}, got {got}"


def _is_secret(field: FieldInfo) -> bool:
    kinds = get_args(field.annotation) or (field.annotation,)
    # Whoever writes credentials into the storage's URL is told not to, and they are not shown.
    return any(kind in (DatabaseUrl, StorageUrl, SecretStr, SecretBytes) for kind in kinds)


def _shown(value: object) -> str:
    # Somebody may have put the database's URL into the wrong variable.
    text = redact_text(str(value))
    text = text if text.isprintable() and text.strip() == text != "" else repr(text)
    return text if len(text) <= 80 else f"{text[:77]}…"

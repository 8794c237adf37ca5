"""Reads the configuration at start-up: either all of it is valid, or every problem is printed at once.

This is the first thing a process does. Logging is not set up yet, so problems go to standard error as plain lines.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import SecretBytes, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from waybill.config.settings import ProcessSettings
from waybill.config.sources import PREFIX, given_bare, given_variables, variable
from waybill.config.storage_url import StorageUrl
from waybill.config.values import DatabaseUrl
from waybill.redaction import redact_text

S = TypeVar("S", bound=ProcessSettings)

# Pydantic's messages are about Python; ours are about a line in somebody's environment.
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


def load(settings: type[S], **defaults: object) -> S:
    """The settings from the environment and `.env`. Prints every problem and exits with 2 if there is one.

    `defaults` are values for fields that nobody set.
    """
    loaded = load_all([settings], **defaults)[settings]
    assert isinstance(loaded, settings)  # noqa: S101 - for the type checker
    return loaded


def load_all(
    classes: Sequence[type[ProcessSettings]], **defaults: object
) -> dict[type[ProcessSettings], ProcessSettings]:
    """Load several settings classes, and print the problems of all of them together."""
    loaded: dict[type[ProcessSettings], ProcessSettings] = {}
    faults: list[str] = []
    given: dict[str, str] = {}
    for settings in classes:
        try:
            given |= given_variables(settings)
            loaded[settings] = settings(**_not_given(settings, defaults, given))
        except ValidationError as error:
            faults += problems(settings, error)
        except (OSError, UnicodeDecodeError) as error:
            faults.append(f".env: cannot be read ({error})")
    if faults:
        # Classes share fields, so the same line may occur several times.
        sys.stderr.write("".join(f"{line}\n" for line in dict.fromkeys(faults)))
        raise SystemExit(2)
    for sentence in misspelled(given):
        sys.stderr.write(f"warning: {sentence}\n")
    return loaded


def _not_given(
    settings: type[ProcessSettings], defaults: Mapping[str, object], given: Mapping[str, str]
) -> dict[str, Any]:
    return {
        name: value
        for name, value in defaults.items()
        if (field := settings.model_fields.get(name)) and variable(name) not in given and not given_bare(field, given)
    }


def problems(settings: type[ProcessSettings], error: ValidationError) -> list[str]:
    """One line for each problem. It names the variable that was set and never shows a secret."""
    given = given_variables(settings)
    lines = [
        _problem(settings, detail, given)
        for detail in error.errors(include_url=False)
        # This default depends on another field that is wrong itself. That field's line is enough.
        if detail["type"] != "default_factory_not_called"
    ]
    return lines + misspelled(given)


def misspelled(given: Iterable[str]) -> list[str]:
    """A sentence for each `WAYBILL_…` name that looks like a typing mistake."""
    # Imported here, because the registry imports every settings class, and their packages import this module.
    from waybill.config.registry import all_settings

    known = {variable(name) for settings in all_settings() for name in settings.model_fields}
    sentences = []
    for name in sorted(given):
        # WAYBILL_TEST_… belongs to the test suite, which means it when it says WAYBILL_TEST_DATABASE_URL.
        if not name.startswith(PREFIX) or name in known or name.startswith(f"{PREFIX}TEST_"):
            continue
        if meant := _closest(name, known):
            sentences.append(f"{name}: no such setting; did you mean {meant}?")
    return sentences


def _closest(name: str, known: Iterable[str]) -> str | None:
    # The prefix would make any two names look alike.
    plain = [each.removeprefix(PREFIX) for each in known]
    matches = get_close_matches(name.removeprefix(PREFIX), plain, n=1, cutoff=0.8)
    return PREFIX + matches[0] if matches else None


def _problem(settings: type[ProcessSettings], detail: ErrorDetails, given: Mapping[str, str]) -> str:
    field_name = str(detail["loc"][0]) if detail["loc"] else ""
    field = settings.model_fields.get(field_name)
    if field is None:
        return redact_text(detail["msg"])
    name = variable(field_name)
    bare = given_bare(field, given)
    if bare and name not in given:
        name = bare.name
    if detail["type"] == "missing":
        example = f", for example {field.examples[0]}" if field.examples else ""
        return f"{name}: is not set and has no default{example}"
    sentence = _SENTENCES.get(detail["type"], detail["msg"]).format(**detail.get("ctx", {}))
    if _is_secret(field):
        return f"{name}: {sentence}"
    # Show what the person wrote, not what we made of it.
    got = _shown(given[name]) if name in given else f"{_shown(detail['input'])}, its default"
    return f"{name}: {sentence}, got {got}"


def _is_secret(field: FieldInfo) -> bool:
    kinds = get_args(field.annotation) or (field.annotation,)
    # People write credentials into the storage's URL. We tell them not to, and do not show them.
    return any(kind in (DatabaseUrl, StorageUrl, SecretStr, SecretBytes) for kind in kinds)


def _shown(value: object) -> str:
    # Somebody may have put the database's URL into the wrong variable.
    text = redact_text(str(value))
    text = text if text.isprintable() and text.strip() == text != "" else repr(text)
    return text if len(text) <= 80 else f"{text[:77]}…"

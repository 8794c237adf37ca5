"""The variables that set a field, and where they are read: the environment and `.env`.

pydantic-settings reads the prefixed names; this adds the bare ones that the product's first notes use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
)

from waybill.config.values import Bare

PREFIX = "WAYBILL_"


def variable(field_name: str) -> str:
    """The variable that sets a field."""
    return PREFIX + field_name.upper()


def bare_names(field: FieldInfo) -> list[Bare]:
    """The unprefixed variables that also set it; the first one that is given counts."""
    return [item for item in field.metadata if isinstance(item, Bare)]


def given_bare(field: FieldInfo, given: Mapping[str, str]) -> Bare | None:
    """The bare name under which the field was given, if any."""
    return next((each for each in bare_names(field) if each.name in given), None)


def given_variables(settings: type[BaseSettings]) -> Mapping[str, str]:
    """Every non-empty variable of the environment and `.env` by its upper-case name; the environment wins."""
    found: dict[str, str] = {}
    for source in (DotEnvSettingsSource(settings), EnvSettingsSource(settings)):
        found.update({name.upper(): value for name, value in source.env_vars.items() if value})
    return found


class BareNames(PydanticBaseSettingsSource):
    """The source of last resort: fields that were given under a bare name."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        given = given_variables(self.settings_cls)
        bare = given_bare(field, given)
        return (bare.read(given) if bare else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        given = given_variables(self.settings_cls)
        return {
            field_name: bare.read(given)
            for field_name, field in self.settings_cls.model_fields.items()
            if (bare := given_bare(field, given))
        }

"""Where values come from: the environment and `.env`, and under which name each field was found there.

pydantic-settings reads the prefixed names; this adds the bare ones that the product's first notes used.
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


def bare_name(field: FieldInfo) -> str | None:
    """The unprefixed variable that also sets it, if there is one."""
    return next((item.name for item in field.metadata if isinstance(item, Bare)), None)


def given_variables(settings: type[BaseSettings]) -> Mapping[str, str]:
    """Every non-empty variable of the environment and `.env` by its upper-case name; the environment wins."""
    found: dict[str, str] = {}
    for source in (DotEnvSettingsSource(settings), EnvSettingsSource(settings)):
        found.update({name.upper(): value for name, value in source.env_vars.items() if value})
    return found


class BareNames(PydanticBaseSettingsSource):
    """The source of last resort: fields found under their bare name."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        name = bare_name(field)
        return (given_variables(self.settings_cls).get(name) if name else None), field_name, False

    def __call__(self) -> dict[str, Any]:
        given = given_variables(self.settings_cls)
        return {
            field_name: given[name]
            for field_name, field in self.settings_cls.model_fields.items()
            if (name := bare_name(field)) and name in given
        }

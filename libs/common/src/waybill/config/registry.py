"""Every installed settings class: those of the platform, the engine, the services and the pipelines."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar, cast

from waybill.config.archive_limits import ArchiveLimitsSettings
from waybill.config.gateway_secret import GatewaySecretSettings
from waybill.config.loader import load_all
from waybill.config.mappings_dir import MappingsDirSettings
from waybill.config.settings import ApiSettings, CommonSettings, ProcessSettings
from waybill.pipelines import installed, resolve

GROUP = "waybill.settings"
"""The entry points with which the engine and the services name their settings classes."""


S = TypeVar("S", bound=ProcessSettings)


def load_service(kind: type[S]) -> tuple[S, list[ProcessSettings]]:
    """A service's own settings and those of the pipelines, with the problems of all of them printed together."""
    loaded = load_all([kind, *_pipeline_settings()])
    return cast("S", loaded.pop(kind)), list(loaded.values())


@cache
def all_settings() -> tuple[type[ProcessSettings], ...]:
    """The reference documents them all, and no process mistakes another's variable for a typing mistake."""
    services = [entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]
    return (
        ProcessSettings,
        CommonSettings,
        GatewaySecretSettings,
        MappingsDirSettings,
        ArchiveLimitsSettings,
        ApiSettings,
        *services,
        *_pipeline_settings(),
    )


def _pipeline_settings() -> list[type[ProcessSettings]]:
    return [resolve(each) for pipeline in installed() for each in pipeline.settings]

"""Every installed settings class: those of the platform, the engine, the services and the pipelines."""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

from waybill.config.settings import ApiSettings, CommonSettings, ProcessSettings
from waybill.pipelines import installed, resolve

GROUP = "waybill.settings"
"""The entry points with which the engine and the services name their settings classes."""


@cache
def all_settings() -> tuple[type[ProcessSettings], ...]:
    """The reference documents them all, and no process mistakes another's variable for a typing mistake."""
    services = [entry.load() for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)]
    pipelines = [resolve(each) for pipeline in installed() for each in pipeline.settings]
    return (ProcessSettings, CommonSettings, ApiSettings, *services, *pipelines)

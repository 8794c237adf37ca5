"""Typed settings: the one way to configure Waybill, read once at a process's start.

Declared in `settings`, read by `loading`, documented by `reference`.
"""

from waybill.config.loader import load
from waybill.config.reference import reference
from waybill.config.settings import (
    SETTINGS,
    ApiSettings,
    CommonSettings,
    GatewaySettings,
    JanitorSettings,
    ProcessSettings,
    WorkerSettings,
)
from waybill.config.values import DatabaseUrl

__all__ = [
    "SETTINGS",
    "ApiSettings",
    "CommonSettings",
    "DatabaseUrl",
    "GatewaySettings",
    "JanitorSettings",
    "ProcessSettings",
    "WorkerSettings",
    "load",
    "reference",
]

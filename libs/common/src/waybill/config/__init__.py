"""Typed settings, read once when a process starts. There is no other way to configure Waybill.

`settings` declares those of the platform. The engine, the services and the pipelines declare theirs in their own
packages, and `registry` finds them all. `loader` reads them, and `reference` documents them.
"""

from waybill.config.loader import load
from waybill.config.settings import ApiSettings, CommonSettings, ProcessSettings
from waybill.config.values import DatabaseUrl

__all__ = ["ApiSettings", "CommonSettings", "DatabaseUrl", "ProcessSettings", "load"]

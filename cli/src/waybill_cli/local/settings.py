"""The settings of `waybill up`: those of every service and pipeline it starts, checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from waybill.config import ApiSettings, DatabaseUrl
from waybill.config.loader import load_all
from waybill.config.registry import all_settings
from waybill_cli.local.addresses import Address, addresses, metrics_addresses
from waybill_engine.settings import WorkerSettings

_EMBEDDED = DatabaseUrl("postgresql://embedded")


class UpSettings(ApiSettings, WorkerSettings):
    """The settings that `waybill up` uses itself."""

    title: ClassVar[str] = "waybill up"

    @property
    def embedded(self) -> bool:
        """Whether we run Postgres ourselves, because nobody named a server."""
        return self.database_url == _EMBEDDED


@dataclass(frozen=True, slots=True)
class Plan:
    """What `waybill up` is to run."""

    settings: UpSettings
    addresses: dict[str, Address]
    """Where each service will listen."""
    metrics: dict[str, Address]
    """Where each service will serve its metrics."""


def load_settings() -> Plan:
    """Our own settings, and what follows from those of the services.

    The services read their settings themselves when they start. We read all of them first, so that a mistake in any is
    reported before anything starts.
    """
    loaded = load_all([UpSettings, *all_settings()], database_url=_EMBEDDED)
    settings = loaded[UpSettings]
    assert isinstance(settings, UpSettings)  # noqa: S101 - for the type checker
    return Plan(settings, addresses(loaded.values()), metrics_addresses(loaded.values()))

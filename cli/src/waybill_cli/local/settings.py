"""What `waybill up` can be told: all that the services can, checked before anything starts."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field
from pydantic_settings import NoDecode

from waybill.config import ApiSettings, DatabaseUrl, GatewaySettings, JanitorSettings, WorkerSettings
from waybill.config.values import Bare

_EMBEDDED = DatabaseUrl("postgresql://embedded")


class UpSettings(ApiSettings, WorkerSettings, GatewaySettings, JanitorSettings):
    """The settings of every service in one; only here may the database be left out."""

    title: ClassVar[str] = "waybill up"

    database_url: Annotated[DatabaseUrl, NoDecode, Bare("DATABASE_URL")] = Field(
        _EMBEDDED, description="Where Postgres is. Not set: `waybill up` runs one of its own."
    )

    @property
    def embedded(self) -> bool:
        """Whether we run Postgres ourselves."""
        return self.database_url == _EMBEDDED

"""The folder with an operator's own mappings, which the gateway, the API and the workers read."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from waybill.config.settings import ProcessSettings
from waybill.config.values import Bare, LocalPath


class MappingsDirSettings(ProcessSettings):
    """The gateway, and everybody who names mappings to it: API and workers."""

    title: ClassVar[str] = "An operator's mappings"

    mappings_dir: Annotated[LocalPath | None, Bare("WAYBILL_GATEWAY_MAPPINGS_DIR")] = Field(
        None,
        description="A folder with further mappings for all tenants, in addition to those that are shipped:"
        " `NAME.json`, or `NAME/mapping.json`, with their schemas beside them. The gateway, the API and the workers"
        " read it when they start, so all of them need the same. A mapping that is wrong stops the start of the gateway"
        " and of the API; what is no mapping is ignored, with a warning in the log.",
    )

"""The limits on a ZIP with many documents. The API, the workers and the gateway hold to the same ones."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from waybill.config.settings import ProcessSettings


class ArchiveLimitsSettings(ProcessSettings):
    """Limits on the ZIP of a batch, for everybody who receives or unpacks one. They hold for bytes that were counted,
    not for what the ZIP says about itself.
    """

    title: ClassVar[str] = "The ZIP of a batch"

    batch_max_mb: int = Field(
        500, ge=1, le=100_000, description="The largest ZIP that is accepted, in MB of 1024 x 1024 bytes."
    )
    batch_max_files: int = Field(
        20_000,
        ge=1,
        le=200_000,
        description="How many files a ZIP may contain, those in nested ZIPs included. One with more is refused.",
    )
    batch_max_unpacked_mb: int = Field(
        4096,
        ge=1,
        le=1_000_000,
        description="How much all files of a ZIP may have together when they are unpacked, in MB. Unpacking stops"
        " there, and the ZIP is refused.",
    )
    batch_max_file_mb: int = Field(
        50,
        ge=1,
        le=2000,
        description="The largest file in a ZIP when it is unpacked, in MB. A larger one fails alone.",
    )
    batch_max_ratio: int = Field(
        200,
        ge=2,
        le=2000,
        description="How many times its packed size a file may have when it is unpacked. One that has more, and more"
        " than 1 MB, fails alone: it was made to fill disks.",
    )
    batch_max_depth: int = Field(
        2,
        ge=0,
        le=5,
        description="How deep ZIPs in the ZIP are unpacked. A ZIP that lies deeper fails alone.",
    )

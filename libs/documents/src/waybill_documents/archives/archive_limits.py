"""Limits on a ZIP, and a budget that counts against them what was really unpacked."""

from __future__ import annotations

from dataclasses import dataclass

from waybill_documents.faults import DocumentRejected, FaultCode
from waybill_documents.messages import DocumentMessage

RATIO_MATTERS_FROM = 2**20
"""Bytes. Below it, a ratio says nothing: a kilobyte of blanks is no bomb."""


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits on one ZIP with everything in it. The defaults are those of the settings that the services have."""

    files: int = 20_000
    """Files in the ZIP and in the ZIPs that it contains."""
    unpacked_bytes: int = 4096 * 2**20
    """Everything that is unpacked, nested ZIPs and files that fail included."""
    file_bytes: int = 50 * 2**20
    ratio: int = 200
    """The largest ratio of a file's unpacked to its packed size, once it exceeds `RATIO_MATTERS_FROM`."""
    depth: int = 2
    """How deep ZIPs within the ZIP are unpacked."""


class LimitReached(DocumentRejected):
    """The ZIP as a whole exceeds a limit. Everything else that is wrong is a fault of one member."""


def too_many_files(limits: ArchiveLimits) -> LimitReached:
    return LimitReached(FaultCode.TOO_MANY_FILES, DocumentMessage("archive.too_many_files", most=limits.files))


class UnpackBudget:
    """Counts the bytes that were unpacked."""

    def __init__(self, limits: ArchiveLimits, spent: int) -> None:
        self._limits = limits
        self.spent = spent

    def spend(self, size: int) -> None:
        """Count bytes, and refuse the ZIP beyond the limit."""
        self.spent += size
        if self.spent > self._limits.unpacked_bytes:
            megabytes = self._limits.unpacked_bytes // 2**20
            raise LimitReached(FaultCode.TOO_LARGE, DocumentMessage("archive.too_large", megabytes=megabytes))

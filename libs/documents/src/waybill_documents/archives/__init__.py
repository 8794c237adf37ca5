"""Unpacks ZIPs from people we do not know, member by member: nothing of a ZIP is believed, and all of it is bounded.

`directory` reads the list of files, `member_names` judges their names, `member_content` unpacks one of them, and
`Unpacker` goes over all of them, those in nested ZIPs too.
"""

from __future__ import annotations

from waybill_documents.archives.archive_limits import ArchiveLimits, LimitReached
from waybill_documents.archives.unpacker import Unpacker, ZipMember, ZipPlace

__all__ = ["ArchiveLimits", "LimitReached", "Unpacker", "ZipMember", "ZipPlace"]

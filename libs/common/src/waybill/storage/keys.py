"""The keys of objects. They are made from the job's id and the day on which it was created.

A key is made once, stored in a row and never computed again, so its form may change with any release. It contains
nothing of the file's original name.
"""

from __future__ import annotations

import re
import uuid

from waybill.errors import UnsafePath
from waybill.files.names import parts_of
from waybill.ids import made_at

LONGEST = 900
"""Object stores allow 1024 bytes, including a prefix."""

# Characters that every file system and object store keeps unchanged. A part must not look like a temporary file.
_PART = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*", re.ASCII)


def checked(key: str) -> str:
    """The key itself. Raises UnsafePath if it is invalid."""
    if len(key) > LONGEST or not all(_PART.fullmatch(part) for part in parts_of(key)):
        raise UnsafePath(f"{key[:100]!r} is no key: parts of A-Z a-z 0-9 . _ = - separated by slashes.")
    return key


def dated(kind: str, job_id: uuid.UUID) -> str:
    """`{kind}/yy/mm/dd/{job}`, so that a folder has the jobs of one day, which can be listed or deleted together."""
    return f"{kind}/{made_at(job_id):%y/%m/%d}/{job_id}"


def upload_key(job_id: uuid.UUID) -> str:
    """Where the document of a job is stored."""
    return f"{dated('uploads', job_id)}.pdf"

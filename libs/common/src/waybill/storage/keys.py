"""How objects are named: by us, from the job's id, sharded by the day it was made.

A key is made once, stored in a row and never computed again, so its shape may change with any release. Nothing of what
a stranger calls a file is in it.
"""

from __future__ import annotations

import re
import uuid

from waybill.errors import UnsafePath
from waybill.files.names import parts_of
from waybill.ids import made_at

LONGEST = 900
"""Object stores take 1024 bytes, and a prefix comes before it."""

# What no file system and no object store writes in another way, and nothing that starts like a temporary file.
_PART = re.compile(r"[A-Za-z0-9_=-][A-Za-z0-9._=-]*", re.ASCII)


def checked(key: str) -> str:
    """The key, if it may be one; UnsafePath otherwise."""
    if len(key) > LONGEST or not all(_PART.fullmatch(part) for part in parts_of(key)):
        raise UnsafePath(f"{key[:100]!r} is no key: parts of A-Z a-z 0-9 . _ = - separated by slashes.")
    return key


def dated(kind: str, job_id: uuid.UUID) -> str:
    """`{kind}/yy/mm/dd/{job}`: no folder grows beyond a day's jobs, and a day can be listed or dropped as one."""
    return f"{kind}/{made_at(job_id):%y/%m/%d}/{job_id}"


def upload_key(job_id: uuid.UUID) -> str:
    """Where the document of a job is stored."""
    return f"{dated('uploads', job_id)}.pdf"

"""Safe file handling: untrusted paths, file types by content, and atomic writes.

Nothing here knows about jobs or storage keys; `waybill.storage` is built on it.
"""

from waybill.files.atomic import AtomicFile, Written, write_atomic
from waybill.files.detection import FileType, detect, detect_bytes
from waybill.files.names import safe_name
from waybill.files.paths import folder_under, open_under, resolve_under

__all__ = [
    "AtomicFile",
    "FileType",
    "Written",
    "detect",
    "detect_bytes",
    "folder_under",
    "open_under",
    "resolve_under",
    "safe_name",
    "write_atomic",
]

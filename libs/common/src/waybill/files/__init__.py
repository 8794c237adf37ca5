"""Safe file handling: paths from strangers, what a file really is, and writing one whole or not at all.

Nothing here knows of jobs or of storage keys; `waybill.storage` is built on it.
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

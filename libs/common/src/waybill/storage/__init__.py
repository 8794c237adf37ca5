"""Where documents and results are kept: the seam behind which a folder or an object store stands.

Rows in Postgres name an object by its key; nothing but this package knows what a key leads to. A stored object
becomes a job's result only through a row that its lease holder writes, so storing alone publishes nothing.

Read `interface` for what every storage promises, then `local` or `objects` for how; `opening` chooses between them.
"""

from waybill.storage.factory import open_storage, storage_of
from waybill.storage.interface import Listed, Storage, Stored
from waybill.storage.keys import upload_key
from waybill.storage.local import LocalStorage
from waybill.storage.space import Space

__all__ = [
    "Listed",
    "LocalStorage",
    "Space",
    "Storage",
    "Stored",
    "open_storage",
    "storage_of",
    "upload_key",
]

"""Storage for documents and results, in a folder or an object store.

Rows in Postgres refer to an object by its key; only this package knows where that is. A stored object becomes a job's
result when the job's worker writes a row about it, so storing alone publishes nothing.

`interface` is what every storage guarantees, `local` and `objects` implement it, and `factory` chooses between them.
"""

from waybill.storage.factory import open_storage, service_storage, storage_of
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
    "service_storage",
    "storage_of",
    "upload_key",
]

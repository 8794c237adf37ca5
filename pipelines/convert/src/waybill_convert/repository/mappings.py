"""All SQL on `mappings` and `mapping_samples`. Who may see or change them is the caller's to check, by the tenant."""

from __future__ import annotations

import json
import uuid
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill_convert.mapping_models import SHARED, MappingSample, MappingState, TenantMapping, WholeMapping
from waybill_convert.revision_models import Json
from waybill_documents.mapping_files import MappingFiles

if TYPE_CHECKING:
    from waybill.db.database import Connection

_COLUMNS = """
SELECT tenant, name, state, title, sha256, bytes, author, embedded,
       (SELECT count(*) FROM mapping_samples
         WHERE mapping_samples.tenant = mappings.tenant AND mapping = mappings.name) AS samples,
       created_at, changed_at, published_at, retired_at
  FROM mappings
"""

_LIST = f"{_COLUMNS} WHERE tenant IN ($1, '') ORDER BY name, tenant DESC"

_GET = f"{_COLUMNS} WHERE tenant = $1 AND name = $2"

_LOCK = f"{_GET} FOR UPDATE"

# One at a time for a name, whoever's it is: what one tenant takes, an operator must not share in the same moment.
_LOCK_NAME = "SELECT pg_advisory_xact_lock(hashtextextended('mapping ' || $1, 0))"

_LOCK_TENANT = "SELECT pg_advisory_xact_lock(hashtextextended('mappings of ' || $1, 0))"

_TAKEN = """
SELECT EXISTS (SELECT FROM mappings WHERE name = $2 AND tenant <> $1 AND (tenant = '' OR $1 = ''))
"""

_USED = """
SELECT count(*) AS mappings, COALESCE(sum(bytes), 0)::bigint AS bytes FROM mappings
 WHERE tenant = $1 AND name <> $2 AND state <> 'retired'
"""

_PUT = """
INSERT INTO mappings (tenant, name, title, document, schemas, sha256, bytes, author, embedded)
VALUES ($1, $2, $3, $4, $5::text::jsonb, $6, $7, $8, $9)
    ON CONFLICT (tenant, name) DO UPDATE
       SET title = excluded.title, document = excluded.document, schemas = excluded.schemas,
           sha256 = excluded.sha256, bytes = excluded.bytes, author = excluded.author,
           embedded = excluded.embedded, changed_at = clock_timestamp()
     WHERE mappings.state = 'draft'
RETURNING created_at
"""

_TOUCH = "UPDATE mappings SET changed_at = clock_timestamp() WHERE tenant = $1 AND name = $2 AND state = 'draft'"

_PUBLISH = """
UPDATE mappings SET state = 'published', published_at = now()
 WHERE tenant = $1 AND name = $2 AND state = 'draft' AND changed_at = $3
RETURNING name
"""

_RETIRE = """
UPDATE mappings SET state = 'retired', retired_at = now()
 WHERE tenant = $1 AND name = $2 AND state = 'published'
RETURNING name
"""

_DELETE = "DELETE FROM mappings WHERE tenant = $1 AND name = $2 AND state = 'draft' RETURNING name"

# JSON is read as text, because not every connection leaves it undecoded: those of sessions do not.
_FILES = "SELECT document, schemas::text FROM mappings WHERE tenant = $1 AND name = $2"

_SAMPLES = """
SELECT id, name, storage_key, bytes, sha256, expected::text, created_at FROM mapping_samples
 WHERE tenant = $1 AND mapping = $2 ORDER BY name
"""

_COUNT_SAMPLES = """
SELECT count(*) FILTER (WHERE mapping = $2) AS of_mapping, count(*) AS of_tenant FROM mapping_samples
 WHERE tenant = $1 AND NOT (mapping = $2 AND name = $3)
"""

_REMOVE_NAMED = "DELETE FROM mapping_samples WHERE tenant = $1 AND mapping = $2 AND name = $3"

_ADD_SAMPLE = """
INSERT INTO mapping_samples (id, tenant, mapping, name, storage_key, bytes, sha256, expected)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8::text::jsonb)
RETURNING created_at
"""

_REMOVE_SAMPLE = "DELETE FROM mapping_samples WHERE tenant = $1 AND mapping = $2 AND id = $3 RETURNING name"

# The tenant's own after what is shared, so that a later one replaces an earlier one of the same name.
_CHOICES = """
SELECT tenant, name, title, sha256, embedded FROM mappings
 WHERE tenant IN ($1, '') AND state = 'published' ORDER BY tenant, name
"""

_RESOLVE = """
SELECT sha256 FROM mappings
 WHERE tenant IN ($1, '') AND name = $2 AND state = 'published' ORDER BY tenant DESC LIMIT 1
"""

# Retired or not: a job that named it runs by it. Without a hash, the job is older than this table, or of an older API.
_VERSION = """
SELECT document, schemas::text FROM mappings
 WHERE tenant IN ($1, '') AND name = $2 AND state <> 'draft' AND ($3::text IS NULL OR sha256 = $3)
 ORDER BY tenant DESC LIMIT 1
"""

_REMOVE_SAMPLES_OF = """
DELETE FROM mapping_samples WHERE id = ANY (ARRAY(SELECT id FROM mapping_samples WHERE tenant = $1 LIMIT $2))
RETURNING id
"""

_ERASE = "SELECT set_config('waybill.erases', $1, true)"

_REMOVE_ALL_OF = "DELETE FROM mappings WHERE tenant = $1"


async def ls(connection: Connection, tenant: str) -> list[TenantMapping]:
    """Those of a tenant and those that are shared, by name."""
    return [_mapping(row) for row in await connection.fetch(_LIST, tenant)]


async def get(connection: Connection, tenant: str, name: str, *, lock: bool = False) -> TenantMapping | None:
    row = await connection.fetchrow(_LOCK if lock else _GET, tenant, name)
    return _mapping(row) if row is not None else None


async def whole(connection: Connection, tenant: str, name: str) -> WholeMapping | None:
    mapping = await get(connection, tenant, name)
    row = await connection.fetchrow(_FILES, tenant, name)
    if mapping is None or row is None:
        return None
    return WholeMapping(mapping, _files(row), await samples(connection, tenant, name))


async def lock_name(connection: Connection, tenant: str, name: str) -> None:
    """One at a time for this tenant and for this name, until the transaction ends."""
    await connection.execute(_LOCK_TENANT, tenant)
    await connection.execute(_LOCK_NAME, name)


async def is_taken(connection: Connection, tenant: str, name: str) -> bool:
    """Whether the name is shared with all; for a shared mapping, whether any tenant has it."""
    return bool(await connection.fetchval(_TAKEN, tenant, name))


async def used(connection: Connection, tenant: str, but: str) -> tuple[int, int]:
    """How many mappings a tenant has in use, and their bytes, without the one of this name."""
    row = await connection.fetchrow(_USED, tenant, but)
    assert row is not None  # noqa: S101 - aggregates always answer
    return row["mappings"], row["bytes"]


async def put(
    connection: Connection, tenant: str, name: str, title: str, embedded: bool, files: MappingFiles, author: str
) -> bool:
    """Make a draft, or replace it. False if the name is that of a published mapping."""
    schemas = json.dumps(dict(files.schemas))
    made = await connection.fetchval(
        _PUT, tenant, name, title, files.document, schemas, files.sha256, files.size, author, embedded
    )
    return made is not None


async def publish(connection: Connection, tenant: str, name: str, changed_at: datetime) -> bool:
    """Publish a draft, unless it or its samples have changed since."""
    return await connection.fetchval(_PUBLISH, tenant, name, changed_at) is not None


async def retire(connection: Connection, tenant: str, name: str) -> bool:
    return await connection.fetchval(_RETIRE, tenant, name) is not None


async def delete(connection: Connection, tenant: str, name: str) -> bool:
    """Delete a draft with its samples. A trigger hands their documents to the janitor."""
    return await connection.fetchval(_DELETE, tenant, name) is not None


async def samples(connection: Connection, tenant: str, name: str) -> list[MappingSample]:
    return [_sample(row) for row in await connection.fetch(_SAMPLES, tenant, name)]


async def count_samples(connection: Connection, tenant: str, mapping: str, but: str) -> tuple[int, int]:
    """How many samples a mapping and its tenant have, without the one of this name."""
    row = await connection.fetchrow(_COUNT_SAMPLES, tenant, mapping, but)
    assert row is not None  # noqa: S101 - aggregates always answer
    return row["of_mapping"], row["of_tenant"]


async def add_sample(
    connection: Connection,
    tenant: str,
    mapping: str,
    sample_id: uuid.UUID,
    name: str,
    key: str,
    size: int,
    sha256: str,
    expected: Json | None,
) -> datetime:
    """Add a sample, in place of one with the same name."""
    await connection.execute(_REMOVE_NAMED, tenant, mapping, name)
    await connection.execute(_TOUCH, tenant, mapping)
    data = json.dumps(expected) if expected is not None else None
    created: datetime = await connection.fetchval(
        _ADD_SAMPLE, sample_id, tenant, mapping, name, key, size, sha256, data
    )
    return created


async def remove_sample(connection: Connection, tenant: str, mapping: str, sample_id: uuid.UUID) -> bool:
    await connection.execute(_TOUCH, tenant, mapping)
    return await connection.fetchval(_REMOVE_SAMPLE, tenant, mapping, sample_id) is not None


async def choices(connection: Connection, tenant: str) -> list[Any]:
    """The published ones: what is shared, then the tenant's own."""
    return list(await connection.fetch(_CHOICES, tenant))


async def resolve(connection: Connection, tenant: str, name: str) -> str | None:
    """The hash of the published mapping that a name means for a tenant."""
    found = await connection.fetchval(_RESOLVE, tenant, name)
    return str(found) if found is not None else None


async def version(connection: Connection, tenant: str, name: str, sha256: str | None) -> MappingFiles | None:
    """The files of the version that a job of this tenant named."""
    row = await connection.fetchrow(_VERSION, tenant, name, sha256)
    return _files(row) if row is not None else None


async def remove_samples(connection: Connection, tenant: str, limit: int) -> list[uuid.UUID]:
    return [row["id"] for row in await connection.fetch(_REMOVE_SAMPLES_OF, tenant, limit)]


async def remove_all(connection: Connection, tenant: str) -> None:
    """Remove a tenant's mappings for good, those that were published too: the tenant is being erased."""
    await connection.execute(_ERASE, tenant)
    await connection.execute(_REMOVE_ALL_OF, tenant)


def is_shared(mapping: TenantMapping) -> bool:
    return mapping.tenant == SHARED


def _mapping(row: Any) -> TenantMapping:
    return TenantMapping(**{**row, "state": MappingState(row["state"])})


def _sample(row: Any) -> MappingSample:
    return MappingSample(**{**row, "expected": json.loads(row["expected"]) if row["expected"] else None})


def _files(row: Any) -> MappingFiles:
    return MappingFiles(row["document"], json.loads(row["schemas"]))

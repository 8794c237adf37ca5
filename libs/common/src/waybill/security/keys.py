"""API keys: create, verify, list and revoke them. All SQL on `api_keys` is here.

A key is `wb_<id>_<secret>`, both in base 62. We look it up by its id and compare the hash of its secret in constant
time; the secret itself is never stored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from waybill import audit
from waybill.errors import NotFound, Refused, Unauthorized
from waybill.ids import new_id
from waybill.messages import msg
from waybill.pg_text import is_storable
from waybill.security.principals import ADMIN, PUBLIC, Principal, known_permissions, of_tenant

if TYPE_CHECKING:
    from waybill.db.database import Connection

_COLUMNS = """
id, tenant, name, hash, hint, permissions, created_at, expires_at, revoked_at, last_used_at, now() AS now
"""

_INSERT = f"""
INSERT INTO api_keys (id, tenant, name, hash, hint, permissions, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, now(), now() + $7 * interval '1 second')
RETURNING {_COLUMNS}
"""  # noqa: S608 - made of constants

_FIND = f"SELECT {_COLUMNS} FROM api_keys WHERE id = $1"  # noqa: S608 - made of constants

_FIND_ALL = f"SELECT {_COLUMNS} FROM api_keys WHERE id = ANY ($1::uuid[])"  # noqa: S608 - made of constants

# At most once a minute: a key that is used a thousand times a second must not cost a thousand updates.
_USED = """
UPDATE api_keys SET last_used_at = now()
 WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < now() - interval '1 minute')
"""

_LIST = f"""
SELECT {_COLUMNS} FROM api_keys
 WHERE ($1::text IS NULL OR tenant = $1) ORDER BY created_at, id
"""  # noqa: S608 - made of constants

# The first revocation counts. Replicas that have cached the key are told to drop it.
_REVOKE = f"""
WITH revoked AS (
    UPDATE api_keys SET revoked_at = COALESCE(revoked_at, now()) WHERE id = $1 RETURNING {_COLUMNS}
)
SELECT revoked.*, pg_notify('waybill_changes', 'key:' || id::text) FROM revoked
"""  # noqa: S608 - made of constants

# A key that somebody else has brought. It may be there already: registering it is repeated with every upgrade.
_ENSURE = f"""
INSERT INTO api_keys (id, tenant, name, hash, hint, permissions, created_at)
VALUES ($1, $2, $3, $4, $5, $6, now())
ON CONFLICT (id) DO NOTHING RETURNING {_COLUMNS}
"""  # noqa: S608 - made of constants

_REVOKED = "SELECT id FROM api_keys WHERE revoked_at IS NOT NULL ORDER BY id"

_REVOKE_ALL = "UPDATE api_keys SET revoked_at = now() WHERE id = ANY ($1::uuid[]) AND revoked_at IS NULL RETURNING id"

_ANY_ADMIN = """
SELECT EXISTS (SELECT FROM api_keys WHERE 'admin' = ANY (permissions) AND revoked_at IS NULL
                  AND (expires_at IS NULL OR expires_at > now()))
"""

# Only one of two concurrent starts may create the first key.
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(hashtextextended('waybill first admin key', 0))"

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEY = re.compile(r"wb_([0-9A-Za-z]{22})_([0-9A-Za-z]{43})")
_DIFFERENT_CHARACTERS = 20
"""The fewest in the secret of a key that was brought. Of 43 random ones about 31 differ, and fewer than 20 practically
never; whoever types a key by hand does not reach it."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """What may be shown of a key."""

    id: uuid.UUID
    tenant: str
    name: str
    hint: str
    permissions: frozenset[str]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    expires_in: float | None
    """Seconds from the moment it was read."""

    @property
    def expired(self) -> bool:
        return self.expires_in is not None and self.expires_in <= 0

    @property
    def state(self) -> str:
        return "revoked" if self.revoked_at else "expired" if self.expired else "active"

    @property
    def principal(self) -> Principal:
        return of_tenant(self.tenant, self.permissions, self.id)


@dataclass(frozen=True, slots=True)
class NewKey:
    info: KeyInfo
    text: str
    """The whole key, which is shown now and never again."""


async def create(
    connection: Connection,
    *,
    tenant: str,
    name: str,
    permissions: Collection[str],
    expires_in: float | None = None,
) -> NewKey:
    """Create a key. `expires_in` is in seconds; with None it is valid until it is revoked."""
    _refuse_invalid(tenant, name, permissions)
    if expires_in is not None and not 0 < expires_in <= 100 * 366 * 86400:
        raise Refused("A key expires in the future, within a hundred years.")
    key_id, secret = new_id(), _base62(secrets.randbits(256), 43)
    async with connection.transaction():
        row = await connection.fetchrow(
            _INSERT, key_id, tenant, name, _hash(secret), secret[-4:], sorted(permissions), expires_in
        )
        detail = {"name": name, "permissions": sorted(permissions), "expires_in": expires_in}
        await audit.record(connection, "key.created", f"key:{key_id}", tenant=tenant, detail=detail)
    return NewKey(_info(row), f"wb_{_base62(key_id.int, 22)}_{secret}")


@dataclass(frozen=True, slots=True)
class EnsuredKey:
    info: KeyInfo
    new: bool
    """False if it was registered before. It may have been revoked since, and then it stays so."""


async def ensure(
    connection: Connection, text: str, *, tenant: str, name: str, permissions: Collection[str]
) -> EnsuredKey:
    """Register a key that somebody else has made, such as a Helm chart, unless it is registered already.

    Refused if it is no key, if it is weak, or if it was registered for something else.
    """
    _refuse_invalid(tenant, name, permissions)
    parsed = parse(text)
    if parsed is None:
        raise Refused("This is no API key: it must be 'wb_', 22 letters or digits that begin with 0, '_', and 43 more.")
    key_id, secret = parsed
    if len(set(secret)) < _DIFFERENT_CHARACTERS:
        raise Refused(
            "This API key is too easy to guess: its last 43 characters must be random. Nothing was registered."
        )
    async with connection.transaction():
        row = await connection.fetchrow(_ENSURE, key_id, tenant, name, _hash(secret), secret[-4:], sorted(permissions))
        if row is not None:
            detail = {"name": name, "permissions": sorted(permissions), "expires_in": None}
            await audit.record(connection, "key.created", f"key:{key_id}", tenant=tenant, detail=detail)
            return EnsuredKey(_info(row), new=True)
    row = await connection.fetchrow(_FIND, key_id)
    if row is None or not hmac.compare_digest(_hash(secret), row["hash"]):
        raise Refused("Another API key has this id. Make a new one.")
    info = _info(row)
    if (info.tenant, info.permissions) != (tenant, frozenset(permissions)):
        raise Refused(
            f"This API key is registered for the tenant '{info.tenant}' with {', '.join(sorted(info.permissions))}, "
            "and that does not change. Make a new key for something else."
        )
    return EnsuredKey(info, new=False)


async def revoked(connection: Connection) -> list[uuid.UUID]:
    """The keys that were revoked."""
    return [row["id"] for row in await connection.fetch(_REVOKED)]


async def revoke_all(connection: Connection, key_ids: Collection[uuid.UUID]) -> int:
    """Revoke these keys in a database that nobody uses yet; how many of them were valid."""
    return len(await connection.fetch(_REVOKE_ALL, list(key_ids)))


async def create_first_admin(connection: Connection, *, tenant: str = "admin") -> NewKey | None:
    """Create the first admin key; None if a valid one exists."""
    async with connection.transaction():
        await connection.execute(_ONE_AT_A_TIME)
        if await connection.fetchval(_ANY_ADMIN):
            return None
        return await create(connection, tenant=tenant, name="first admin key", permissions=[ADMIN])


async def verify(connection: Connection, text: str) -> KeyInfo:
    """The key with this text. Unauthorized if it is unknown or no longer valid."""
    (found,) = await verify_all(connection, [text])
    if isinstance(found, Unauthorized):
        raise found
    return found


async def verify_all(connection: Connection, texts: Sequence[str]) -> list[KeyInfo | Unauthorized]:
    """The same for many keys, with one statement for as many as are wrong."""
    parsed = [parse(text) for text in texts]
    rows = await connection.fetch(_FIND_ALL, [key_id for key_id, _ in filter(None, parsed)])
    known = {row["id"]: row for row in rows}
    return [await _judge(connection, each, known) for each in parsed]


async def _judge(
    connection: Connection, parsed: tuple[uuid.UUID, str] | None, known: Mapping[uuid.UUID, Any]
) -> KeyInfo | Unauthorized:
    if parsed is None:
        return Unauthorized(msg("api_key.unknown"))
    key_id, secret = parsed
    row = known.get(key_id)
    # We compare even if there is no such key, so that the time it takes reveals nothing.
    if not hmac.compare_digest(_hash(secret), row["hash"] if row is not None else bytes(32)) or row is None:
        return Unauthorized(msg("api_key.unknown"))
    try:
        return await _usable(connection, _info(row))
    except Unauthorized as refused:
        return refused


async def find(connection: Connection, key_id: uuid.UUID) -> KeyInfo:
    """The key that a browser signed in with. Unauthorized if it is no longer valid."""
    row = await connection.fetchrow(_FIND, key_id)
    if row is None:
        raise Unauthorized(msg("api_key.gone"))
    return await _usable(connection, _info(row))


async def ls(connection: Connection, *, tenant: str | None = None) -> list[KeyInfo]:
    return [_info(row) for row in await connection.fetch(_LIST, tenant)]


async def revoke(connection: Connection, key_id: uuid.UUID) -> KeyInfo:
    """Make a key invalid from now on, and sign out the browsers that signed in with it."""
    async with connection.transaction():
        row = await connection.fetchrow(_REVOKE, key_id)
        if row is None:
            raise NotFound(f"There is no key {key_id}.")
        info = _info(row)
        detail = {"name": info.name}
        await audit.record(connection, "key.revoked", f"key:{key_id}", tenant=info.tenant, detail=detail)
    return info


def parse(text: str) -> tuple[uuid.UUID, str] | None:
    """The id and the secret in a key; None if the text is not a key."""
    match = _KEY.fullmatch(text)
    if match is None:
        return None
    number = 0
    for character in match[1]:
        number = number * 62 + _ALPHABET.index(character)
    return (uuid.UUID(int=number), match[2]) if number < 1 << 128 else None


def _refuse_invalid(tenant: str, name: str, permissions: Collection[str]) -> None:
    if not _NAME.fullmatch(tenant) or tenant == PUBLIC:
        raise Refused(
            f"A tenant's name has at most 63 lower case letters, digits, '.', '_' and '-'. '{PUBLIC}' is taken: it is"
            " the tenant of everybody who did not sign in."
        )
    if not (1 <= len(name) <= 100 and name.isprintable() and is_storable(name)):
        raise Refused("A key's name has 1 to 100 printable characters.")
    if not permissions:
        raise Refused(f"A key needs at least one permission: {', '.join(known_permissions())}.")
    if unknown := sorted(set(permissions) - known_permissions().keys()):
        raise Refused(f"There is no permission '{unknown[0]}'. Choose from: {', '.join(known_permissions())}.")


async def _usable(connection: Connection, info: KeyInfo) -> KeyInfo:
    if info.revoked_at is not None:
        raise Unauthorized(msg("api_key.revoked"))
    if info.expired:
        raise Unauthorized(msg("api_key.expired"))
    await connection.execute(_USED, info.id)
    return info


def _info(row: Any) -> KeyInfo:
    return KeyInfo(
        id=row["id"],
        tenant=row["tenant"],
        name=row["name"],
        hint=row["hint"],
        permissions=frozenset(row["permissions"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
        expires_in=(row["expires_at"] - row["now"]).total_seconds() if row["expires_at"] else None,
    )


def _hash(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))

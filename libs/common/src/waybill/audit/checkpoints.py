"""Signed places in the chain: its head, and how far it was cut. All SQL on `audit_checkpoints`.

Without its head, nobody could tell that the last events were removed; without the cut, nobody could tell a prefix that
retention removed from one that somebody else did. Both are signed with a secret that whoever can write to the database
need not know: `WAYBILL_AUDIT_SECRET`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

from waybill.security.secrets import shared_secret

if TYPE_CHECKING:
    from waybill.config import CommonSettings
    from waybill.db.database import Connection

HEAD = "head"
CUT = "cut"
GENESIS = bytes(32)
"""The hash before the first event."""

_READ = "SELECT position, hash, at, signed_with, signature FROM audit_checkpoints WHERE name = $1"

_WRITE = """
INSERT INTO audit_checkpoints (name, position, hash, at, signed_with, signature) VALUES ($1, $2, $3, now(), $4, $5)
    ON CONFLICT (name) DO UPDATE
       SET position = excluded.position, hash = excluded.hash, at = excluded.at, signed_with = excluded.signed_with,
           signature = excluded.signature
"""


class ChainPlace(NamedTuple):
    """A place in the chain."""

    position: int
    hash: bytes


BEGINNING = ChainPlace(0, GENESIS)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    place: ChainPlace
    at: datetime
    signed_with: str
    signature: bytes


class Signer:
    """Signs checkpoints, and checks signatures."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hashlib.sha256(b"waybill audit\0" + secret).digest()
        self.fingerprint = hashlib.sha256(b"waybill audit fingerprint\0" + self._secret).hexdigest()[:16]

    @classmethod
    async def of(cls, settings: CommonSettings, connection: Connection) -> Signer:
        """With the secret of the settings, or one that all services share through the database."""
        if settings.audit_secret is not None:
            return cls(settings.audit_secret.get_secret_value().encode())
        return cls(await shared_secret(connection, "audit"))

    def sign(self, name: str, place: ChainPlace) -> bytes:
        return hmac.digest(self._secret, f"{name}:{place.position}:{place.hash.hex()}".encode(), "sha256")

    def signed(self, name: str, checkpoint: Checkpoint) -> bool:
        """Whether we signed this checkpoint."""
        return hmac.compare_digest(self.sign(name, checkpoint.place), checkpoint.signature)


async def read(connection: Connection, name: str) -> Checkpoint | None:
    row = await connection.fetchrow(_READ, name)
    if row is None:
        return None
    return Checkpoint(ChainPlace(row["position"], row["hash"]), row["at"], row["signed_with"], row["signature"])


async def write(connection: Connection, signer: Signer, name: str, place: ChainPlace) -> None:
    await connection.execute(_WRITE, name, *place, signer.fingerprint, signer.sign(name, place))

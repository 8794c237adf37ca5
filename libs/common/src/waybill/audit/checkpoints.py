"""Signed places in the chain: its head, and how far it was cut. All SQL on `audit_checkpoints`.

Without its head, nobody could tell that the last events were removed; without the cut, nobody could tell a prefix that
retention removed from one that somebody else did. Both are signed with a key that whoever can write to the database
need not know (`waybill.audit.signatures`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from waybill.audit.signatures import Signer
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


async def read(connection: Connection, name: str) -> Checkpoint | None:
    row = await connection.fetchrow(_READ, name)
    if row is None:
        return None
    return Checkpoint(ChainPlace(row["position"], row["hash"]), row["at"], row["signed_with"], row["signature"])


async def write(connection: Connection, signer: Signer, name: str, place: ChainPlace) -> None:
    await connection.execute(_WRITE, name, *place, signer.fingerprint, signer.sign(name, place))

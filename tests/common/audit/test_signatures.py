"""Checkpoints are checked with a public key alone, and by nothing else than the right one."""

from __future__ import annotations

import hashlib
import hmac

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from common.audit.conftest import Attack, Grow
from support.audit_recorder import SECRET
from support.clock import Clock
from support.engine import Connect
from waybill.audit.chain import renew
from waybill.audit.checkpoints import HEAD, read
from waybill.audit.cut import cut
from waybill.audit.signatures import PublicKeys, Signer
from waybill.audit.verification import verify
from waybill.db import Database
from waybill.db.database import Connection
from waybill.errors import Refused

OTHER = Signer(b"another secret")


def public(*signers: Signer) -> PublicKeys:
    return PublicKeys.read(signer.pem.encode() for signer in signers)


async def sign_as_before(connection: Connection) -> None:
    """Sign the checkpoints as versions did that had no public keys."""
    secret = hashlib.sha256(b"waybill audit\0" + SECRET).digest()
    fingerprint = hashlib.sha256(b"waybill audit fingerprint\0" + secret).hexdigest()[:16]
    for row in await connection.fetch("SELECT name, position, hash FROM audit_checkpoints"):
        sentence = f"{row['name']}:{row['position']}:{row['hash'].hex()}"
        await connection.execute(
            "UPDATE audit_checkpoints SET signed_with = $1, signature = $2 WHERE name = $3",
            fingerprint,
            hmac.digest(secret, sentence.encode(), "sha256"),
            row["name"],
        )


async def test_the_public_key_is_enough_to_check_a_trail(
    grow: Grow, db: Database, signer: Signer, connect: Connect, clock: Clock
) -> None:
    await grow(4)
    await clock.forward(86400 * 31)
    assert await cut(db, signer, 30, 2) == 2
    verdict = await verify(await connect(), public(signer))
    assert (verdict.whole, verdict.first) == (True, 3)


@pytest.mark.parametrize(
    "attack_with",
    [
        "UPDATE audit_checkpoints SET signature = decode(repeat('00', 64), 'hex')",
        "UPDATE audit_checkpoints SET signature = ''",
        "UPDATE audit_checkpoints SET position = 2, hash = (SELECT hash FROM audit_events WHERE position = 2)",
    ],
)
async def test_a_forged_checkpoint_is_seen_with_the_public_key(
    grow: Grow, signer: Signer, attack: Attack, connect: Connect, attack_with: str
) -> None:
    await grow(3)
    await attack(attack_with)
    fault = (await verify(await connect(), public(signer))).fault
    assert fault is not None
    assert "forged" in fault.says


async def test_a_key_of_somebody_else_is_not_taken_for_a_forgery_and_does_not_hide_one(
    grow: Grow, signer: Signer, attack: Attack, connect: Connect
) -> None:
    await grow(2)
    connection = await connect()
    fault = (await verify(connection, public(OTHER))).fault
    assert fault is not None
    assert "another key" in fault.says
    assert (await verify(connection, public(OTHER, signer))).whole, "both keys of a trail whose secret changed"
    await attack(f"UPDATE audit_checkpoints SET signed_with = '{OTHER.fingerprint}'")
    fault = (await verify(connection, public(OTHER, signer))).fault
    assert fault is not None
    assert "forged" in fault.says


async def test_checkpoints_from_before_public_keys_stay_valid_and_are_signed_anew(
    grow: Grow, db: Database, signer: Signer, connect: Connect, clock: Clock
) -> None:
    await grow(4)
    await clock.forward(86400 * 31)
    await cut(db, signer, 30, 2)
    connection = await connect()
    await sign_as_before(connection)
    assert (await verify(connection, signer)).whole, "with the secret"
    assert not (await verify(connection, public(signer))).whole
    assert not (await verify(connection, OTHER)).whole
    await renew(db, signer)
    assert (await verify(connection, public(signer))).whole


async def test_the_chain_goes_on_behind_a_head_from_before_public_keys(
    grow: Grow, signer: Signer, connect: Connect
) -> None:
    await grow(2)
    connection = await connect()
    await sign_as_before(connection)
    await grow(1)
    assert (await verify(connection, public(signer))).whole
    assert await connection.fetchval("SELECT count(*) FROM audit_events") == 3, "no other secret is reported"


async def test_a_forgery_from_before_public_keys_is_not_signed_anew(
    grow: Grow, db: Database, signer: Signer, attack: Attack, connect: Connect
) -> None:
    await grow(3)
    connection = await connect()
    await sign_as_before(connection)
    await attack("UPDATE audit_checkpoints SET position = 2, hash = (SELECT hash FROM audit_events WHERE position = 2)")
    await renew(db, signer)
    head = await read(connection, HEAD)
    assert head is not None
    assert signer.is_former(head)
    assert not (await verify(connection, signer)).whole


@pytest.mark.parametrize("text", [b"", b"wb_something", OTHER.pem[:60].encode(), b"\xff" * 100])
def test_what_is_no_public_key_is_refused(text: bytes) -> None:
    with pytest.raises(Refused, match="waybill audit key"):
        PublicKeys.read([text])


def test_a_public_key_of_another_kind_is_refused() -> None:
    other = ec.generate_private_key(ec.SECP256R1()).public_key()
    with pytest.raises(Refused, match="waybill audit key"):
        PublicKeys.read([other.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)])

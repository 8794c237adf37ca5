"""Signatures of checkpoints: Ed25519, so that whoever has the public key can check them, and nobody else can make one.

The private key follows from the audit trail's secret, so there is one secret to keep and nothing more to set up.
Checkpoints of earlier versions are signed with an HMAC of the same secret. They stay valid for whoever knows it, and
are signed anew by `waybill.audit.chain.renew`.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

from waybill.errors import Refused
from waybill.security.secrets import shared_secret

if TYPE_CHECKING:
    from waybill.audit.checkpoints import ChainPlace, Checkpoint
    from waybill.config import CommonSettings
    from waybill.db.database import Connection


class Verifier(Protocol):
    """Checks the signatures of checkpoints."""

    def knows(self, checkpoint: Checkpoint) -> bool:
        """Whether it has what this checkpoint claims to be signed with."""

    def signed(self, name: str, checkpoint: Checkpoint) -> bool:
        """Whether that has signed this checkpoint."""

    def unknown(self, checkpoint: Checkpoint) -> str:
        """What to say of a checkpoint whose key it does not have."""


class PublicKeys:
    """The public keys that somebody was given: now and, after the secret has changed, before."""

    def __init__(self, keys: Iterable[Ed25519PublicKey]) -> None:
        self._keys = {fingerprint_of(key): key for key in keys}

    @classmethod
    def read(cls, pem: Iterable[bytes]) -> PublicKeys:
        """Of texts as `waybill audit key` prints them. Refused if one is something else."""
        keys = []
        for text in pem:
            try:
                key = load_pem_public_key(text)
            except Exception:  # noqa: BLE001 - the library has several, and they all mean the same here
                key = None
            if not isinstance(key, Ed25519PublicKey):
                raise Refused("This is not a public key as `waybill audit key` prints it.")
            keys.append(key)
        return cls(keys)

    def knows(self, checkpoint: Checkpoint) -> bool:
        return checkpoint.signed_with in self._keys

    def signed(self, name: str, checkpoint: Checkpoint) -> bool:
        key = self._keys.get(checkpoint.signed_with)
        if key is None:
            return False
        try:
            key.verify(checkpoint.signature, _sentence(name, checkpoint.place))
        except InvalidSignature:
            return False
        return True

    def unknown(self, checkpoint: Checkpoint) -> str:
        return (
            f"was signed with another key ({checkpoint.signed_with}) than yours ({', '.join(sorted(self._keys))})."
            " Was the secret changed? Ask for the older public key, too."
        )


class Signer:
    """Signs checkpoints, and checks signatures."""

    def __init__(self, secret: bytes) -> None:
        # A label for each use, so that a key of one kind says nothing about the other.
        self._private = Ed25519PrivateKey.from_private_bytes(
            hashlib.sha256(b"waybill audit ed25519\0" + secret).digest()
        )
        self.public = self._private.public_key()
        self.fingerprint = fingerprint_of(self.public)
        self._keys = PublicKeys([self.public])
        self._former = hashlib.sha256(b"waybill audit\0" + secret).digest()
        self._former_fingerprint = hashlib.sha256(b"waybill audit fingerprint\0" + self._former).hexdigest()[:16]

    @classmethod
    async def of(cls, settings: CommonSettings, connection: Connection) -> Signer:
        """With the secret of the settings, or one that all services share through the database."""
        if settings.audit_secret is not None:
            return cls(settings.audit_secret.get_secret_value().encode())
        return cls(await shared_secret(connection, "audit"))

    @property
    def pem(self) -> str:
        """The public key, to be given to whoever wants to check the trail."""
        return self.public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()

    def sign(self, name: str, place: ChainPlace) -> bytes:
        return self._private.sign(_sentence(name, place))

    def knows(self, checkpoint: Checkpoint) -> bool:
        return self._keys.knows(checkpoint) or self.is_former(checkpoint)

    def is_former(self, checkpoint: Checkpoint) -> bool:
        """Whether it claims to be signed with an HMAC of our secret."""
        return checkpoint.signed_with == self._former_fingerprint

    def signed(self, name: str, checkpoint: Checkpoint) -> bool:
        if not self.is_former(checkpoint):
            return self._keys.signed(name, checkpoint)
        place = checkpoint.place
        expected = hmac.digest(self._former, f"{name}:{place.position}:{place.hash.hex()}".encode(), "sha256")
        return hmac.compare_digest(expected, checkpoint.signature)

    def unknown(self, checkpoint: Checkpoint) -> str:
        return (
            f"was signed with another secret ({checkpoint.signed_with}) than the one here ({self.fingerprint})."
            " Is WAYBILL_AUDIT_SECRET the services' own?"
        )


def fingerprint_of(key: Ed25519PublicKey) -> str:
    digest = hashlib.sha256(key.public_bytes(Encoding.Raw, PublicFormat.Raw)).hexdigest()
    return f"ed25519:{digest[:16]}"


def _sentence(name: str, place: ChainPlace) -> bytes:
    """What is signed. docs/audit.md shows how to check it with other programs."""
    return f"waybill audit {name}:{place.position}:{place.hash.hex()}".encode()

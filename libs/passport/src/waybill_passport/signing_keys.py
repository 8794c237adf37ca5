"""Ed25519 keys: private ones from a secret, public ones for everybody.

A key's id is made of its public half, so it needs no register, and two keys cannot have the same.
"""

from __future__ import annotations

import base64
import binascii

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_der_private_key,
    load_pem_private_key,
)

from waybill_passport.digests import base32, sha256

_ID_BYTES = 10
"""Of the hash of the public key: 16 characters. Two keys would have to be made on purpose to share them."""
_SEED = 32


class BadKey(ValueError):
    """This is no Ed25519 key. The message never says what it was."""


class SigningKey:
    """A private key. Nothing prints it."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = key.public_key()
        self.id = key_id(self.public)

    def sign(self, data: bytes) -> bytes:
        return self._key.sign(data)

    def __repr__(self) -> str:
        return f"SigningKey({self.id})"

    @classmethod
    def load(cls, secret: bytes) -> SigningKey:
        """From PEM, or from base64 of PEM, of DER, or of the 32 bytes themselves. BadKey otherwise."""
        text = secret.strip()
        if text.startswith(b"-----BEGIN"):
            return cls(_loaded(text))
        try:
            data = base64.b64decode(b"".join(text.split()), validate=True)
        except (binascii.Error, ValueError):
            raise BadKey("The signing key is neither PEM nor base64.") from None
        if len(data) == _SEED:
            return cls(Ed25519PrivateKey.from_private_bytes(data))
        return cls(_loaded(data))


def key_id(public: Ed25519PublicKey) -> str:
    return base32(sha256(raw(public))[:_ID_BYTES])


def raw(public: Ed25519PublicKey) -> bytes:
    """The 32 bytes of a public key."""
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def public_key(data: bytes) -> Ed25519PublicKey:
    """The public key of these 32 bytes. BadKey if they are none."""
    try:
        return Ed25519PublicKey.from_public_bytes(data)
    except ValueError:
        raise BadKey("A public key has 32 bytes.") from None


def _loaded(data: bytes) -> Ed25519PrivateKey:
    load = load_pem_private_key if data.lstrip().startswith(b"-----BEGIN") else load_der_private_key
    try:
        key = load(data, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise BadKey("The signing key cannot be read. It must be an Ed25519 key without a password.") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise BadKey("The signing key is not an Ed25519 key.")
    return key

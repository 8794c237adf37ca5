"""Hashes, and how they are written.

A hash of one sort of thing must never be one of another sort: each is over the name of its sort, a NUL, and the bytes.
What other systems hash as well (a passport's payload, the nodes of a Merkle tree) has no such prefix.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac

SIZE = 32


def sha256(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def digest(domain: str, data: bytes) -> bytes:
    """The hash of data of a sort."""
    return sha256(domain.encode("ascii") + b"\0" + data)


def keyed(secret: bytes, data: bytes) -> bytes:
    """HMAC-SHA256: what only somebody with the secret can compute."""
    return hmac.new(secret, data, hashlib.sha256).digest()


def same(one: bytes, other: bytes) -> bool:
    """Whether two hashes are equal, without telling by the time it takes where they differ."""
    return hmac.compare_digest(one, other)


def base32(data: bytes) -> str:
    """Upper case and without padding: the characters that a QR code holds most of."""
    return base64.b32encode(data).decode("ascii").rstrip("=")


def from_base32(text: str) -> bytes:
    """The bytes of such a text. ValueError if it is none, or not the one way to write them."""
    try:
        data = base64.b32decode(text + "=" * (-len(text) % 8))
    except binascii.Error as error:
        raise ValueError(f"{text[:20]!r} is not base32") from error
    if base32(data) != text:
        raise ValueError(f"{text[:20]!r} is not how base32 writes it")
    return data

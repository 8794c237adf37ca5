"""Signed envelopes (DSSE): what is signed is the type and the bytes together, never a bare hash.

So nobody can present a signature over one sort of document as one over another.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from waybill_passport.canonical import Json, canonical, read
from waybill_passport.signing_keys import SigningKey


class BadEnvelope(ValueError):
    """This is no envelope, or its signature does not fit."""


def pre_authentication(payload_type: str, payload: bytes) -> bytes:
    """The bytes that are signed: `DSSEv1 <length> <type> <length> <payload>`."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


@dataclass(frozen=True, slots=True)
class Envelope:
    payload_type: str
    payload: bytes
    key_id: str
    signature: bytes

    @classmethod
    def sign(cls, payload_type: str, payload: bytes, key: SigningKey) -> Envelope:
        return cls(payload_type, payload, key.id, key.sign(pre_authentication(payload_type, payload)))

    def is_signed_by(self, key: Ed25519PublicKey) -> bool:
        """Whether the signature is that of this key, over this type and payload."""
        try:
            key.verify(self.signature, pre_authentication(self.payload_type, self.payload))
        except InvalidSignature:
            return False
        return True

    def dump(self) -> bytes:
        """The envelope as JSON."""
        return canonical(
            {
                "payloadType": self.payload_type,
                "payload": base64.b64encode(self.payload).decode("ascii"),
                "signatures": [{"keyid": self.key_id, "sig": base64.b64encode(self.signature).decode("ascii")}],
            }
        )

    @classmethod
    def parse(cls, text: bytes) -> Envelope:
        """An envelope with one signature. BadEnvelope or NotCanonical if it is none."""
        match read(text):
            case {"payloadType": str(kind), "payload": str(payload), "signatures": [Mapping() as signed]}:
                if isinstance(key_id := signed.get("keyid"), str):
                    return cls(kind, _bytes(payload), key_id, _bytes(signed.get("sig")))
        raise BadEnvelope("This is no envelope with one signature.")


def _bytes(text: Json) -> bytes:
    if not isinstance(text, str):
        raise BadEnvelope("The envelope lacks a part.")
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise BadEnvelope("A part of the envelope is not base64.") from None
    if base64.b64encode(data).decode("ascii") != text:  # another spelling of the same bytes would be another envelope
        raise BadEnvelope("A part of the envelope is not how base64 writes it.")
    return data

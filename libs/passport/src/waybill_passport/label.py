"""What a battery's label says: a link that also proves itself without a network, and the seed's older text.

A QR code holds most of the upper-case letters, digits and a few signs that make up its alphanumeric mode, so a link in
that alphabet, scheme and host included, is a smaller picture.
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from waybill_passport.digests import base32, from_base32
from waybill_passport.envelope import pre_authentication
from waybill_passport.signing_keys import SigningKey

PAYLOAD_TYPE = "application/vnd.waybill.passport-label"
_HOST = re.compile(r"[A-Z0-9.-]{1,60}(?::[0-9]{1,5})?", re.ASCII)
_LINK = re.compile(
    r"HTTPS://(?P<host>[A-Z0-9.:-]+)/P/(?P<receipt>[A-Z2-7]{52})(?P<key>[A-Z2-7]{16})(?P<signature>[A-Z2-7]{103})",
    re.ASCII,
)
_BPC = re.compile(
    r"BPC1\|pv=(?P<version>[0-9a-f-]{36})\|ph=(?P<payload>[A-Z2-7]{52})\|pr=(?P<proof>[A-Z2-7]{52})"
    r"\|rh=(?P<receipt>[A-Z2-7]{52})",
    re.ASCII,
)


class BadLabel(ValueError):
    """This text is not that of a label."""


@dataclass(frozen=True, slots=True)
class LabelLink:
    """The link on a label: whose passport, by the hash of its receipt, and the signature that proves it."""

    host: str
    receipt_hash: bytes
    key_id: str
    signature: bytes

    @classmethod
    def sign(cls, host: str, receipt_hash: bytes, key: SigningKey) -> LabelLink:
        """BadLabel if the host cannot stand on a label."""
        host = host.upper()
        if not _HOST.fullmatch(host):
            raise BadLabel(f"The host {host[:60]!r} cannot stand on a label: letters, digits, dots and dashes only.")
        return cls(host, receipt_hash, key.id, key.sign(pre_authentication(PAYLOAD_TYPE, receipt_hash)))

    def text(self) -> str:
        return f"HTTPS://{self.host}/P/{base32(self.receipt_hash)}{self.key_id}{base32(self.signature)}"

    def is_signed_by(self, key: Ed25519PublicKey) -> bool:
        """Whether the label is genuine: all that it takes is its text and the public key."""
        try:
            key.verify(self.signature, pre_authentication(PAYLOAD_TYPE, self.receipt_hash))
        except InvalidSignature:
            return False
        return True

    @classmethod
    def parse(cls, text: str) -> LabelLink:
        """The link in a text, as a reader may have changed its case. BadLabel if there is none."""
        found = _LINK.fullmatch(text.strip().upper())
        if found is None:
            raise BadLabel("This is not the link of a label.")
        try:
            return cls(found["host"], from_base32(found["receipt"]), found["key"], from_base32(found["signature"]))
        except ValueError as error:
            raise BadLabel(f"The label is damaged: {error}") from None


@dataclass(frozen=True, slots=True)
class SeedLabel:
    """The text of the first notes, without a signature: `BPC1|pv=…|ph=…|pr=…|rh=…`."""

    passport_version_id: str
    payload_hash: bytes
    proof_root: bytes
    receipt_hash: bytes

    def text(self) -> str:
        hashes = (self.payload_hash, self.proof_root, self.receipt_hash)
        payload, proof, receipt = (base32(each) for each in hashes)
        return f"BPC1|pv={self.passport_version_id}|ph={payload}|pr={proof}|rh={receipt}"

    @classmethod
    def parse(cls, text: str) -> SeedLabel:
        """BadLabel if it is none."""
        found = _BPC.fullmatch(text.strip())
        if found is None:
            raise BadLabel("This is not the text of a label.")
        try:
            version = str(uuid.UUID(found["version"]))
            hashes = [from_base32(found[name]) for name in ("payload", "proof", "receipt")]
        except ValueError as error:
            raise BadLabel(f"The label is damaged: {error}") from None
        return cls(version, *hashes)

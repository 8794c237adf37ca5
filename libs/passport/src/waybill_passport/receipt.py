"""The receipt of a passport version: what it was made from, what came of it, when, and by whose key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from waybill_passport.canonical import Json, canonical, read
from waybill_passport.digests import sha256
from waybill_passport.envelope import Envelope
from waybill_passport.signing_keys import SigningKey

PAYLOAD_TYPE = "application/vnd.waybill.passport-receipt+json"
MOST_BYTES = 16_384

_HASH = re.compile(r"[0-9a-f]{64}", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_TEXT = re.compile(r"[ -~]{1,200}", re.ASCII)


class BadReceipt(ValueError):
    """This is no receipt."""


@dataclass(frozen=True, slots=True)
class Receipt:
    receipt_version: int
    passport_id: str
    passport_version_id: str
    snapshot_id: str
    snapshot_hash: str
    rules_version_id: str
    rules_hash: str
    tests_hash: str
    compiler_build: str
    payload_hash: str
    proof_root: str
    fields_root: str
    fields_count: int
    """How many leaves the tree with the root `fields_root` has."""
    issued_at: str
    key_id: str

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if each.type == "int":
                good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
            else:
                good = isinstance(value, str) and _form(each.name).fullmatch(value) is not None
            if not good:
                raise BadReceipt(f"The receipt's {each.name} is not right.")

    def dump(self) -> bytes:
        return canonical(asdict(self))

    @property
    def hash(self) -> bytes:
        return sha256(self.dump())

    def signed(self, key: SigningKey) -> Envelope:
        """The receipt in an envelope. BadReceipt if it names another key."""
        if key.id != self.key_id:
            raise BadReceipt("The receipt names another key than the one that signs it.")
        return Envelope.sign(PAYLOAD_TYPE, self.dump(), key)

    @classmethod
    def parse(cls, text: bytes) -> Receipt:
        """BadReceipt unless these are the bytes of a receipt, and the only way to write it."""
        if len(text) > MOST_BYTES:
            raise BadReceipt(f"A receipt has at most {MOST_BYTES} bytes.")
        found: Json = read(text)
        if not isinstance(found, Mapping) or found.keys() != {each.name for each in fields(cls)}:
            raise BadReceipt("A receipt has other fields.")
        receipt = cls(**found)
        if receipt.dump() != text:
            raise BadReceipt("The receipt is not written canonically.")
        return receipt


def _form(name: str) -> re.Pattern[str]:
    if name.endswith(("_hash", "_root")):
        return _HASH
    if name == "issued_at":
        return _TIME
    return _UUID if name.endswith("_id") and name != "key_id" else _TEXT

"""What the passport library's tests share: keys, a receipt, and vectors that others made."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from waybill_passport.receipt import Receipt
from waybill_passport.signing_keys import SigningKey

VECTORS = Path(__file__).parents[3] / "shared" / "data" / "vectors"


@pytest.fixture
def key() -> SigningKey:
    return SigningKey.load(base64.b64encode(bytes(range(32))))


@pytest.fixture
def other_key() -> SigningKey:
    return SigningKey.load(base64.b64encode(bytes(range(1, 33))))


@pytest.fixture
def receipt(key: SigningKey) -> Receipt:
    return Receipt(
        receipt_version=1,
        passport_id="01a1f60b-a340-71f3-b954-3c13fe2c5d4f",
        passport_version_id="01a1f60b-a340-71f3-b954-3c13fe2c5d50",
        snapshot_id="01a1f60b-a340-71f3-b954-3c13fe2c5d51",
        snapshot_hash="a" * 64,
        rules_version_id="01a1f60b-a340-71f3-b954-3c13fe2c5d52",
        rules_hash="b" * 64,
        tests_hash="c" * 64,
        compiler_build="waybill 0.2.0",
        payload_hash="d" * 64,
        proof_root="e" * 64,
        fields_root="f" * 64,
        fields_count=7,
        issued_at="2026-11-19T12:00:00Z",
        key_id=key.id,
    )


def vectors(*parts: str) -> Path:
    """A folder of vectors. The test is skipped where it is not."""
    folder = VECTORS.joinpath(*parts)
    if not folder.is_dir():
        pytest.skip(f"{'/'.join(parts)} is not beside the project")
    return folder

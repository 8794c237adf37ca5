"""Receipts: one way to write them, and no other is read."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from waybill_passport.canonical import NotCanonical
from waybill_passport.receipt import MOST_BYTES, PAYLOAD_TYPE, BadReceipt, Receipt
from waybill_passport.signing_keys import SigningKey


def test_a_receipt_comes_back(receipt: Receipt) -> None:
    assert Receipt.parse(receipt.dump()) == receipt
    assert Receipt.parse(receipt.dump()).hash == receipt.hash
    assert len(receipt.dump()) < MOST_BYTES


def test_it_is_signed_by_the_key_that_it_names(receipt: Receipt, key: SigningKey, other_key: SigningKey) -> None:
    envelope = receipt.signed(key)
    assert envelope.is_signed_by(key.public)
    assert (envelope.payload_type, Receipt.parse(envelope.payload)) == (PAYLOAD_TYPE, receipt)
    with pytest.raises(BadReceipt, match="names another key"):
        receipt.signed(other_key)


@pytest.mark.parametrize(
    "change",
    [
        {"snapshot_hash": "A" * 64},
        {"passport_id": "no id"},
        {"issued_at": "2026-11-19 12:00"},
        {"fields_count": -1},
        {"fields_count": True},
        {"compiler_build": "zero\nlines"},
        {"payload_hash": None},
    ],
)
def test_a_field_that_is_not_right_is_refused(receipt: Receipt, change: dict[str, object]) -> None:
    with pytest.raises(BadReceipt, match=next(iter(change))):
        replace(receipt, **change)  # type: ignore[arg-type]


def test_other_ways_to_write_it_are_refused(receipt: Receipt) -> None:
    found = json.loads(receipt.dump())
    for text in (
        json.dumps(found),  # with blanks
        json.dumps({**found, "more": 1}),
        json.dumps({name: found[name] for name in list(found)[1:]}),
        "[]",
        " " * (MOST_BYTES + 1),
    ):
        with pytest.raises((BadReceipt, NotCanonical)):
            Receipt.parse(text.encode())


def test_every_changed_byte_gives_another_receipt_or_none(receipt: Receipt) -> None:
    whole = receipt.dump()
    for at in range(len(whole)):
        changed = bytearray(whole)
        changed[at] ^= 1
        try:
            assert Receipt.parse(bytes(changed)).hash != receipt.hash
        except (BadReceipt, NotCanonical):
            continue

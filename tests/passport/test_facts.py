"""Snapshots: their hash is made of their facts, and of nothing else."""

from __future__ import annotations

import hashlib
import json
import random

import pytest

from waybill_passport.canonical import NotCanonical
from waybill_passport.facts import BadSnapshot, Fact, Snapshot

FACTS = [Fact("BOM", "cell.1", {"weight": "12.340"}), Fact("PCF", "total", "3.2"), Fact("BOM", "cell.2", [1, None])]
ID = "01a1f60b-a340-71f3-b954-3c13fe2c5d4f"


def test_the_hash_is_the_one_of_the_notes() -> None:
    def hashed(value: object) -> str:
        text = json.dumps(value, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    listed = [
        {"type": kind, "key": key, "payload_hash": hashed(payload)}
        for kind, key, payload in (
            ("BOM", "cell.1", {"weight": "12.340"}),
            ("BOM", "cell.2", [1, None]),
            ("PCF", "total", "3.2"),
        )
    ]
    assert Snapshot(ID, FACTS).hash == hashed({"snapshot_version": 1, "snapshot_id": ID, "facts": listed})


def test_the_order_of_facts_makes_no_difference() -> None:
    shuffled = FACTS[:]
    for _ in range(5):
        random.Random(3).shuffle(shuffled)
        assert Snapshot(ID, shuffled).hash == Snapshot(ID, FACTS).hash


def test_every_change_changes_the_hash() -> None:
    before = Snapshot(ID, FACTS).hash
    others = [
        Snapshot("01a1f60b-a340-71f3-b954-3c13fe2c5d50", FACTS),
        Snapshot(ID, FACTS[1:]),
        Snapshot(ID, [*FACTS[1:], Fact("BOM", "cell.1", {"weight": "12.34"})]),
        Snapshot(ID, FACTS, version=2),
    ]
    assert len({before, *(each.hash for each in others)}) == 5


def test_facts_are_found_by_key_and_by_prefix() -> None:
    snapshot = Snapshot(ID, FACTS)
    assert snapshot.get("PCF", "total") == "3.2"
    assert snapshot.get("PCF", "cell.1") is None
    assert snapshot.by_prefix("BOM", "cell.") == [("cell.1", {"weight": "12.340"}), ("cell.2", [1, None])]


def test_a_snapshot_comes_back() -> None:
    snapshot = Snapshot(ID, FACTS)
    assert Snapshot.parse(json.dumps(snapshot.as_json()).encode()).hash == snapshot.hash


@pytest.mark.parametrize("text", ["{}", '{"snapshot_version":1,"snapshot_id":"a","facts":[{}]}', "[", "[1.5]"])
def test_what_is_no_snapshot_is_refused(text: str) -> None:
    with pytest.raises((BadSnapshot, NotCanonical)):
        Snapshot.parse(text.encode())


def test_a_fact_cannot_be_there_twice() -> None:
    with pytest.raises(BadSnapshot, match=r"BOM 'cell.1' twice"):
        Snapshot(ID, [*FACTS, Fact("BOM", "cell.1", 1)])

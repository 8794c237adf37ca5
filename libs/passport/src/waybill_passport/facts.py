"""Facts, and the snapshot of them that a passport is compiled from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from waybill_passport.canonical import Json, canonical, read
from waybill_passport.digests import sha256

VERSION = 1


class BadSnapshot(ValueError):
    """Facts that cannot be a snapshot."""


@dataclass(frozen=True)
class Fact:
    """One thing that a document says: what sort of thing, under which key, and what."""

    type: str
    key: str
    payload: Json
    """Canonical JSON: decimals are texts."""

    @cached_property
    def payload_hash(self) -> str:
        return sha256(canonical(self.payload)).hex()

    def as_json(self) -> dict[str, Json]:
        return {"type": self.type, "key": self.key, "payload": self.payload}


class Snapshot:
    """A sealed set of facts. Its hash depends on nothing but them and its id, in whatever order they come."""

    def __init__(self, snapshot_id: str, facts: Iterable[Fact], *, version: int = VERSION) -> None:
        self.id = snapshot_id
        self.version = version
        self.facts: Sequence[Fact] = sorted(facts, key=lambda fact: (fact.type, fact.key))
        self._known = {(fact.type, fact.key): fact for fact in self.facts}
        if len(self._known) < len(self.facts):
            twice = next(
                (one.type, one.key)
                for one, next_one in zip(self.facts, self.facts[1:], strict=False)
                if (one.type, one.key) == (next_one.type, next_one.key)
            )
            raise BadSnapshot(f"The snapshot has the fact {twice[0]} {twice[1]!r} twice.")

    def get(self, kind: str, key: str) -> Json:
        """The payload of a fact; None if there is none."""
        fact = self._known.get((kind, key))
        return fact.payload if fact is not None else None

    def by_prefix(self, kind: str, prefix: str) -> list[tuple[str, Json]]:
        """The facts of a type whose keys begin like this, by their keys."""
        return [(fact.key, fact.payload) for fact in self.facts if fact.type == kind and fact.key.startswith(prefix)]

    @cached_property
    def hash(self) -> str:
        listed = [{"type": one.type, "key": one.key, "payload_hash": one.payload_hash} for one in self.facts]
        return sha256(canonical({"snapshot_version": self.version, "snapshot_id": self.id, "facts": listed})).hex()

    def as_json(self) -> dict[str, Json]:
        facts = [fact.as_json() for fact in self.facts]
        return {"snapshot_version": self.version, "snapshot_id": self.id, "facts": facts}

    @classmethod
    def parse(cls, text: bytes) -> Snapshot:
        """A snapshot as `as_json` writes it. BadSnapshot or NotCanonical if it is none."""
        match read(text):
            case {"snapshot_version": int(version), "snapshot_id": str(snapshot_id), "facts": list(facts), **rest}:
                if not rest:
                    return cls(snapshot_id, [_fact(each) for each in facts], version=version)
        raise BadSnapshot("This is no snapshot.")


def _fact(given: Json) -> Fact:
    if isinstance(given, Mapping) and given.keys() == {"type", "key", "payload"}:
        kind, key = given["type"], given["key"]
        if isinstance(kind, str) and isinstance(key, str):
            return Fact(kind, key, given["payload"])
    raise BadSnapshot("A fact must have a type, a key and a payload, and nothing else.")

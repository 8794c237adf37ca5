"""Showing single fields of a passport, with proof, without showing the rest.

Each field of the payload is a leaf of a Merkle tree: its path, its value and a salt. Salts keep a hidden value from
being guessed by trying all that it could be. They are derived from a secret that was sealed with the snapshot, so
compiling again gives the same tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waybill_passport.canonical import Json, canonical
from waybill_passport.digests import keyed
from waybill_passport.merkle_tree import inclusion_proof, is_included, leaf_hash, root_of

_SALT = b"waybill passport field salt\0"


@dataclass(frozen=True, slots=True)
class DisclosedField:
    """A field that is shown, and what it takes to check it against the root."""

    path: str
    value: Json
    salt: bytes
    index: int
    proof: tuple[bytes, ...]

    def as_json(self) -> dict[str, Json]:
        return {
            "path": self.path,
            "value": self.value,
            "salt": self.salt.hex(),
            "index": self.index,
            "proof": [each.hex() for each in self.proof],
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Json]) -> DisclosedField:
        """ValueError if it is not one."""
        try:
            proof = tuple(bytes.fromhex(each) for each in given["proof"])
            return cls(str(given["path"]), given["value"], bytes.fromhex(given["salt"]), _index(given["index"]), proof)
        except (KeyError, TypeError) as error:
            raise ValueError(f"This is no disclosed field: {error}") from error


class FieldTree:
    """The tree over all fields of a payload, in the order of their paths."""

    def __init__(self, fields: Mapping[str, Json], salt_secret: bytes) -> None:
        self._fields = fields
        self._paths = sorted(fields)
        self._salts = {path: keyed(salt_secret, _SALT + path.encode()) for path in self._paths}
        self._leaves = [_leaf(path, fields[path], self._salts[path]) for path in self._paths]
        self.root = root_of(self._leaves)

    @property
    def size(self) -> int:
        return len(self._leaves)

    def disclose(self, paths: Iterable[str]) -> list[DisclosedField]:
        """These fields, in their order. KeyError for one that there is not."""
        wanted = set(paths)
        if unknown := wanted - set(self._paths):
            raise KeyError(min(unknown))
        return [
            DisclosedField(
                path, self._fields[path], self._salts[path], index, tuple(inclusion_proof(self._leaves, index))
            )
            for index, path in enumerate(self._paths)
            if path in wanted
        ]


def is_of(field: DisclosedField, root: bytes, size: int) -> bool:
    """Whether a field belongs to the passport whose fields have this root."""
    return is_included(_leaf(field.path, field.value, field.salt), field.index, size, field.proof, root)


def _leaf(path: str, value: Json, salt: bytes) -> bytes:
    return leaf_hash(canonical({"path": path, "salt": salt.hex(), "value": value}))


def _index(given: Json) -> int:
    if isinstance(given, bool) or not isinstance(given, int):
        raise TypeError("an index is a whole number")
    return given

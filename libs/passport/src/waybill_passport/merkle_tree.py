"""Merkle trees (RFC 6962): one hash for many leaves, and short proofs that a leaf is among them."""

from __future__ import annotations

from collections.abc import Sequence

from waybill_passport.digests import same, sha256

EMPTY = sha256(b"")
"""The root of a tree without leaves."""


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data)


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right)


def root_of(leaves: Sequence[bytes]) -> bytes:
    """The root over leaf hashes."""
    if not leaves:
        return EMPTY
    level = list(leaves)
    while len(level) > 1:
        pairs = [node_hash(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
    return level[0]


def inclusion_proof(leaves: Sequence[bytes], index: int) -> list[bytes]:
    """The hashes that lead from a leaf to the root."""
    if not 0 <= index < len(leaves):
        raise ValueError(f"There is no leaf {index} among {len(leaves)}.")
    level, at = list(leaves), index
    proof: list[bytes] = []
    while len(level) > 1:
        beside = at ^ 1
        if beside < len(level):
            proof.append(level[beside])
        pairs = [node_hash(level[pair], level[pair + 1]) for pair in range(0, len(level) - 1, 2)]
        level = [*pairs, level[-1]] if len(level) % 2 else pairs
        at //= 2
    return proof


def is_included(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Whether a leaf hash is at this place of a tree of this size and root."""
    if not 0 <= index < size:
        return False
    at, last, found = index, size - 1, leaf
    for beside in proof:
        if last == 0:
            return False
        if at % 2 or at == last:
            found = node_hash(beside, found)
            while at % 2 == 0 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, beside)
        at, last = at >> 1, last >> 1
    return last == 0 and same(found, root)

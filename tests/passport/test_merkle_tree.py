"""Merkle trees: the vectors of RFC 6962, and every leaf of every small tree."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from passport.conftest import vectors
from waybill_passport.digests import sha256
from waybill_passport.merkle_tree import EMPTY, inclusion_proof, is_included, leaf_hash, node_hash, root_of


def test_the_vectors_of_others() -> None:
    files = sorted(vectors("merkle", "inclusion").rglob("*.json"))
    assert len(files) > 50
    for file in files:
        case = json.loads(file.read_text())
        proof = [base64.b64decode(each) for each in case["proof"] or ()]
        leaf, root = base64.b64decode(case["leafHash"]), base64.b64decode(case["root"])
        found = is_included(leaf, case["leafIdx"], case["treeSize"], proof, root)
        assert found is not case["wantErr"], f"{file.name}: {case['desc']}"


def test_every_leaf_of_every_small_tree_is_proved_and_no_other() -> None:
    for size in range(1, 20):
        leaves = [leaf_hash(bytes([number])) for number in range(size)]
        root = root_of(leaves)
        for index in range(size):
            proof = inclusion_proof(leaves, index)
            assert is_included(leaves[index], index, size, proof, root)
            assert not is_included(leaf_hash(b"another"), index, size, proof, root)
            assert not is_included(leaves[index], index + 1, size, proof, root)
            assert not is_included(leaves[index], index, size, [*proof, EMPTY], root)
            if proof:
                assert not is_included(leaves[index], index, size, proof[:-1], root)


@given(st.lists(st.binary(max_size=4), min_size=1, max_size=40), st.data())
def test_a_changed_byte_of_a_proof_is_noticed(contents: list[bytes], data: st.DataObject) -> None:
    leaves = [leaf_hash(content) for content in contents]
    index = data.draw(st.integers(0, len(leaves) - 1))
    proof = inclusion_proof(leaves, index)
    if not proof:
        return
    at, bit = data.draw(st.integers(0, len(proof) * 32 - 1)), data.draw(st.integers(0, 7))
    changed = bytearray(b"".join(proof))
    changed[at] ^= 1 << bit
    parts = [bytes(changed[start : start + 32]) for start in range(0, len(changed), 32)]
    assert not is_included(leaves[index], index, len(leaves), parts, root_of(leaves))


def test_the_shape_of_a_tree() -> None:
    one, two, three = (leaf_hash(text) for text in (b"1", b"2", b"3"))
    assert root_of([]) == sha256(b"")
    assert root_of([one]) == one
    assert root_of([one, two, three]) == node_hash(node_hash(one, two), three)
    with pytest.raises(ValueError, match="There is no leaf 3 among 3"):
        inclusion_proof([one, two, three], 3)

"""Single fields are shown with proof, and hidden ones cannot be guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from waybill_passport.disclosure import DisclosedField, FieldTree, is_of

FIELDS = {"weight.value": "12.340", "weight.unit": "kg", "maker": "ACME", "cells": [1, 2], "recycled": None}
SECRET = bytes(32)


def test_each_field_proves_itself_without_the_others() -> None:
    tree = FieldTree(FIELDS, SECRET)
    for path in FIELDS:
        (field,) = tree.disclose([path])
        again = DisclosedField.from_json(field.as_json())
        assert again == field
        assert (field.path, field.value) == (path, FIELDS[path])
        assert is_of(field, tree.root, tree.size)


def test_nothing_of_a_field_can_be_changed() -> None:
    tree = FieldTree(FIELDS, SECRET)
    (field,) = tree.disclose(["maker"])
    for changed in (
        replace(field, value="Other"),
        replace(field, path="maker2"),
        replace(field, salt=bytes(32)),
        replace(field, index=field.index + 1),
        replace(field, proof=field.proof[1:]),
    ):
        assert not is_of(changed, tree.root, tree.size)
    assert not is_of(field, tree.root, 2 * tree.size)
    assert not is_of(field, bytes(32), tree.size)


def test_the_order_of_fields_makes_no_difference_and_the_secret_does() -> None:
    backwards = dict(reversed(FIELDS.items()))
    assert FieldTree(FIELDS, SECRET).root == FieldTree(backwards, SECRET).root
    assert FieldTree(FIELDS, SECRET).root != FieldTree(FIELDS, b"another secret").root


def test_two_fields_with_one_value_have_different_salts() -> None:
    one, other = FieldTree({"a": 1, "b": 1}, SECRET).disclose(["a", "b"])
    assert one.salt != other.salt


def test_a_field_that_is_not_there() -> None:
    with pytest.raises(KeyError, match="nothing"):
        FieldTree(FIELDS, SECRET).disclose(["maker", "nothing"])


@pytest.mark.parametrize("given", [{}, {"path": "a", "value": 1, "salt": "zz", "index": 0, "proof": []}, {"path": "a"}])
def test_what_is_no_field_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"no disclosed field|hexadecimal"):
        DisclosedField.from_json(given)

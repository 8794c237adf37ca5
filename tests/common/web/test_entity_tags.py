"""A client that names the version it has is not sent it again."""

import pytest

from waybill.web.entity_tags import is_known


@pytest.mark.parametrize("header", ['"a"', 'W/"a"', '"b", "a"', '"b",W/"a"', "*"])
def test_a_version_that_the_client_has(header: str) -> None:
    assert is_known('"a"', header)
    assert is_known('W/"a"', header)


@pytest.mark.parametrize("header", [None, "", '"b"', "a", '"ab"', '"a'])
def test_a_version_that_it_has_not(header: str | None) -> None:
    assert not is_known('"a"', header)

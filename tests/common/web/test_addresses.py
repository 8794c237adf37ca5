"""The address that a request is counted by."""

from __future__ import annotations

import pytest
from fastapi import Request

from waybill.web.addresses import address_of


@pytest.mark.parametrize(
    ("client", "address"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::9", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::9", "2001:db8:1:3::/64"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("fe80::1%eth0", "fe80::/64"),
        ("testclient", "testclient"),
        (None, "unknown"),
    ],
)
def test_a_64_of_ipv6_is_one_address(client: str | None, address: str) -> None:
    scope = {"type": "http", "client": (client, 1) if client else None}
    assert address_of(Request(scope)) == address

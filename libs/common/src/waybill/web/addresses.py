"""The network address that a request is counted by.

Behind a proxy that `WAYBILL_API_TRUSTED_PROXIES` names it is the address that the proxy saw, and nobody else can claim
one.
"""

from __future__ import annotations

import ipaddress

from fastapi import Request


def address_of(request: Request) -> str:
    """The client's address. One customer usually has a whole /64 of IPv6, so that counts as one address."""
    host = request.client.host if request.client else "unknown"
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # a test's or a socket's name
        return host
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address, 64), strict=False))

"""Reads the certificates of the world's authorities once per process, not for each HTTP client.

That takes 18 ms of processor time, longer than most requests of a test, and a test of the API makes four clients. None
of them speaks TLS. httpx has no setting for it, but lets clients share what was read.
"""

from __future__ import annotations

import functools

import httpx
from httpx._transports import default


def read_once() -> None:
    """Call it before the first client. Processes that are forked later share what this one has read."""
    vars(default)["create_ssl_context"] = functools.cache(httpx.create_ssl_context)
    httpx.Client(trust_env=False).close()

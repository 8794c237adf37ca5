"""A script that watches a page asks for the part of it that changes, by a header."""

from __future__ import annotations

from fastapi import Request
from starlette.datastructures import MutableHeaders
from starlette.responses import Response

_HEADER = "Waybill-Part"


def wants_part(request: Request) -> bool:
    return _HEADER in request.headers


def add_part_header(response: Response) -> None:
    """Tell caches that the same address has another answer for scripts."""
    MutableHeaders(raw=response.raw_headers).add_vary_header(_HEADER)

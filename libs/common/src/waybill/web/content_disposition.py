"""The name under which a browser saves a download."""

from __future__ import annotations

from urllib.parse import quote


def disposition(name: str) -> str:
    """RFC 6266: the name in UTF-8, and in ASCII for old clients."""
    ascii_name = "".join(c if c.isascii() and c.isprintable() and c not in '"\\%;' else "_" for c in name)
    return f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{quote(name, safe='')}"

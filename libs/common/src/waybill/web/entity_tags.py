"""Entity tags: whether a client has the current version already (`If-None-Match`)."""

from __future__ import annotations


def is_known(tag: str, if_none_match: str | None) -> bool:
    """Whether the header names the tag. Weak and strong tags compare alike here (RFC 9110, 13.1.2).

    Ask only about something that exists: `*` is every version of it.
    """
    given = {each.strip().removeprefix("W/") for each in (if_none_match or "").split(",")}
    return tag.removeprefix("W/") in given or "*" in given

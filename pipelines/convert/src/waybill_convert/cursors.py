"""Opaque cursors: where the next page of a list begins, and which changes a client has seen.

`since` is a transaction id below which everything was visible when the list was read (`pg_snapshot_xmin`). A change
that was not visible then has that id or a later one, however late it commits. So nothing is missed, but some changes
may be repeated.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from waybill.errors import Refused
from waybill.messages import msg

_MOST_XID = 2**63 - 1
_EARLIEST, _LATEST = datetime(1970, 1, 2, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)
_NUMBER = re.compile(r"[0-9]{1,19}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ListPosition:
    """The last row of a page: the next page begins after it."""

    listed_at: datetime
    job_id: uuid.UUID

    def __str__(self) -> str:
        micros = round((self.listed_at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)
        return _pack(f"p{micros}.{self.job_id.hex}")

    @classmethod
    def parse(cls, text: str) -> ListPosition:
        micros, _, job = _unpack(text, "p").partition(".")
        try:
            if not _NUMBER.fullmatch(micros):
                raise ValueError(micros)
            listed_at = datetime.fromtimestamp(int(micros) // 1_000_000, UTC).replace(
                microsecond=int(micros) % 1_000_000
            )
            return cls(listed_at, uuid.UUID(hex=job))
        except (ValueError, OverflowError, OSError):
            raise _invalid() from None


@dataclass(frozen=True, slots=True)
class Since:
    """Everything that changed in the transaction `xid` or later; with `after`, only what comes after that row."""

    xid: int
    floor: int | None = None
    """While a long list of changes is read page by page, this is where the next list will begin."""
    after: uuid.UUID | None = None

    def __str__(self) -> str:
        rest = "" if self.after is None else f".{self.floor}.{self.after.hex}"
        return _pack(f"s{self.xid}{rest}")

    @classmethod
    def parse(cls, text: str) -> Since:
        parts = _unpack(text, "s").split(".")
        try:
            if len(parts) == 1:
                return cls(_xid(parts[0]))
            xid, floor, after = parts
            return cls(_xid(xid), _xid(floor), uuid.UUID(hex=after))
        except ValueError:
            raise _invalid() from None


def parse_since(text: str) -> Since | datetime:
    """A cursor of ours, or an ISO time with its zone (UTC if it has none)."""
    try:
        moment = datetime.fromisoformat(text.replace(" ", "+"))  # a plus sign that was not encoded
    except ValueError:
        return Since.parse(text)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    if not _EARLIEST < moment < _LATEST:
        raise Refused(msg("convert.list.since"))
    return moment


def _xid(text: str) -> int:
    if not _NUMBER.fullmatch(text) or int(text) > _MOST_XID:
        raise ValueError(text)
    return int(text)


def _pack(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


def _unpack(text: str, kind: str) -> str:
    if len(text) > 200:
        raise _invalid()
    try:
        plain = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        raise _invalid() from None
    if not plain.startswith(kind):
        raise _invalid()
    return plain[1:]


def _invalid() -> Refused:
    return Refused(msg("convert.list.cursor"))

"""How many connections a server keeps open, and which of them make room when there are more.

Without a limit, a client that opens connections and sends nothing takes every file descriptor, and then nobody is
answered: not a probe, not another visitor, and no connection to Postgres can be opened either.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

_MOST = 4096
"""More than a process of ours can serve at once, and few enough to look through."""
_SHARE_MADE_FREE = 20
"""One in so many goes at once, so that a flood does not make us look through all of them for each connection."""


class Spare(Protocol):
    """An open connection, as far as it matters here."""

    address: str

    @property
    def waits_since(self) -> float | None:
        """Since when its client has had nothing to wait for, by the loop's clock. None while it waits for an answer."""


T = TypeVar("T", bound=Spare)


def most_connections() -> int:
    """Half of the descriptors that this process may open: files and the database need the others."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(min(soft // 2, _MOST), 1)


def expendable(connections: Iterable[T], most: int) -> list[T]:
    """Which connections to close, now that there are more than `most`.

    Whoever waits for an answer is left alone. Of the others, those go first whose address has most connections, so that
    one client's flood costs that client; among these, the one that has said nothing for longest.
    """
    everybody = list(connections)
    too_many = len(everybody) - most
    if too_many <= 0:
        return []
    by_address = Counter(one.address for one in everybody)
    waiting = [(since, one) for one in everybody if (since := one.waits_since) is not None]
    waiting.sort(key=lambda each: (-by_address[each[1].address], each[0]))
    return [one for _, one in waiting[: too_many + most // _SHARE_MADE_FREE]]

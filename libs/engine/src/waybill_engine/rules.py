"""The rules about what may be claimed now, each written once.

Operators pause queues and set caps and rates; a sick dependency's breaker limits the kinds that need it. The conditions
here are SQL, for the statements that obey these rules (`claim`, `lanes`, `rescue`) and the one that explains them
(`explain`). `Rules` is what a worker remembers of them between two looks at the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Cap:
    """The most jobs of a tenant, of a kind, or of both that may run at once in the whole cluster. None means any."""

    id: int
    tenant: str | None
    kind: str | None
    most: int


class Peer(NamedTuple):
    """A worker that hears announcements, and what it serves."""

    id: str
    queues: Sequence[str]
    kinds: Sequence[str]


@dataclass(frozen=True, slots=True)
class Pace:
    """At most `most` jobs start in any `seconds`."""

    most: int
    seconds: float
    burst: int | None = None
    """How many of them may start at once, after a pause; a tenth of `most` by default. The rest are spread evenly."""

    @property
    def at_once(self) -> int:
        return max(self.most // 10, 1) if self.burst is None else self.burst


@dataclass(frozen=True, slots=True)
class Rate:
    """How many jobs of a tenant, of a kind, or of both may start in some time, in the whole cluster. None means any."""

    id: int
    tenant: str | None
    kind: str | None
    most: int
    seconds: float
    burst: int


@dataclass(frozen=True, slots=True)
class Rules:
    caps: Sequence[Cap] = ()
    """The caps that limit the lanes that were found."""
    rates: Sequence[Rate] = ()
    """The rates that do."""
    more: bool = False
    """There are caps or rates of others, too. A lane that is announced later may be behind one of them."""
    limited: Mapping[str, str] = field(default_factory=dict)
    """Dependencies whose breaker is not closed or that asked us to wait, with what changes when that does."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weights of tenants, where they are not 1."""
    fleet: Sequence[Peer] = field(default=(), compare=False)
    """The workers that hear announcements. No rule, but it comes with them."""


WORKER_MAY_CLAIM = "workers.state = 'active' AND workers.lease_expires_at > now()"
"""A worker claims while it is active and its own lease lasts."""


def queue_is_paused(queue: str) -> str:
    """Nothing is claimed from a paused queue. `queue` is an SQL expression."""
    return f"EXISTS (SELECT FROM queues WHERE queues.name = {queue} AND queues.paused_at IS NOT NULL)"


RETURN_SECONDS = 10
"""Seconds after a cool-down for which calls to the dependency come back gradually."""

BREAKER_LIMITS = (
    "(breakers.state <> 'closed'"
    f" OR COALESCE(breakers.cooldown_until > now() - interval '{RETURN_SECONDS} seconds', false))"
)
"""A breaker limits what may be claimed: it is not closed, or its dependency has just asked us to wait."""


def dependencies_of(kinds: str) -> str:
    """The dependencies of a row of `kinds`. Workers of release 0.1.0 write only one."""
    return f"COALESCE({kinds}.dependencies, array_remove(ARRAY[{kinds}.dependency], NULL))"


def kind_is_blocked(kind: str) -> str:
    """While a breaker limits one of a kind's dependencies, only a few jobs are claimed. `kind` is an SQL expression."""
    return f"""EXISTS (SELECT FROM kinds AS blocked JOIN breakers ON breakers.name = ANY ({dependencies_of("blocked")})
                        WHERE blocked.name = {kind} AND {BREAKER_LIMITS})"""


_CAPS = "(SELECT id, tenant, kind, most FROM caps WHERE true"
_RATES = "(SELECT id, tenant, kind, most, seconds, burst, spacing, paid_up_to FROM rates WHERE most IS NOT NULL"


def caps_on(row: str) -> str:
    """The rows of `caps` that limit the tenant and kind of `row`, a job or a lane."""
    return _limits_on(_CAPS, row)


def caps_among(lanes: str) -> str:
    """The rows of `caps` that limit what waits in the table `lanes`."""
    return _limits_among(_CAPS, lanes)


def rates_on(row: str) -> str:
    """The rows of `rates` that limit the tenant and kind of `row`, a job or a lane."""
    return _limits_on(_RATES, row)


def rates_among(lanes: str) -> str:
    """The rows of `rates` that limit what waits in the table `lanes`."""
    return _limits_among(_RATES, lanes)


def _limits_on(select: str, row: str) -> str:
    # One condition with OR would go through all rows. Each of these is a look-up in the unique index on (tenant, kind).
    return f"""({select} AND tenant = {row}.tenant AND kind = {row}.kind)
                UNION ALL
                {select} AND tenant = {row}.tenant AND kind IS NULL)
                UNION ALL
                {select} AND tenant IS NULL AND kind = {row}.kind))"""


def _limits_among(select: str, lanes: str) -> str:
    # For a thousand lanes, three look-ups each would cost more than finding the lanes.
    tenants, kinds = (f"ARRAY(SELECT DISTINCT {column} FROM {lanes})" for column in ("tenant", "kind"))  # noqa: S608
    return f"""({select} AND tenant = ANY ({tenants}) AND (kind IS NULL OR kind = ANY ({kinds})))
                UNION ALL
                {select} AND tenant IS NULL AND kind = ANY ({kinds})))"""

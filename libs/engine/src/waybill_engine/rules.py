"""The rules about what may be claimed now, each written once.

Operators pause queues and set caps; a sick dependency's breaker limits the kinds that need it. The conditions here are
SQL, for the statements that obey these rules (`claim`, `lanes`, `rescue`) and the one that explains them (`explain`).
`Rules` is what a worker remembers of them between two looks at the database.
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
class Rules:
    caps: Sequence[Cap] = ()
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


def cap_applies(row: str) -> str:
    """Whether the row of `caps` at hand limits the tenant and kind of `row`, a job or a lane."""
    return f"COALESCE(caps.tenant = {row}.tenant, true) AND COALESCE(caps.kind = {row}.kind, true)"

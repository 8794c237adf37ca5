"""The rules about what may be claimed now, each written once.

Operators pause queues and set caps; a sick dependency's breaker blocks the kinds that need it. The conditions here are
SQL, for the statements that obey these rules (`claim`, `lanes`, `rescue`) and the one that explains them (`explain`).
`Rules` is what a worker remembers of them between two looks at the database.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Cap:
    """The most jobs of a tenant, of a kind, or of both that may run at once in the whole cluster. None means any."""

    id: int
    tenant: str | None
    kind: str | None
    most: int


@dataclass(frozen=True, slots=True)
class Rules:
    caps: Sequence[Cap] = ()
    """The caps that limit the lanes that were found."""
    more: bool = False
    """There are caps on other tenants, too. A lane that is announced later may be behind one of them."""
    blocked: Mapping[str, str] = field(default_factory=dict)
    """Dependencies whose breaker is not closed, and since when it has been in its state."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """The weights of tenants, where they are not 1."""


WORKER_MAY_CLAIM = "workers.state = 'active' AND workers.lease_expires_at > now()"
"""A worker claims while it is active and its own lease lasts."""


def queue_is_paused(queue: str) -> str:
    """Nothing is claimed from a paused queue. `queue` is an SQL expression."""
    return f"EXISTS (SELECT FROM queues WHERE queues.name = {queue} AND queues.paused_at IS NOT NULL)"


def kind_is_blocked(kind: str) -> str:
    """While the breaker of a kind's dependency is not closed, only probes are claimed. `kind` is an SQL expression."""
    return f"""EXISTS (SELECT FROM kinds AS blocked JOIN breakers ON breakers.name = blocked.dependency
                        WHERE blocked.name = {kind} AND breakers.state <> 'closed')"""


def caps_on(row: str) -> str:
    """The rows of `caps` that limit the tenant and kind of `row`, a job or a lane.

    One condition with OR would go through all caps. Each of these is a look-up in the unique index on (tenant, kind).
    """
    return f"""(SELECT id, tenant, kind, most FROM caps WHERE tenant = {row}.tenant AND kind = {row}.kind
                UNION ALL
                SELECT id, tenant, kind, most FROM caps WHERE tenant = {row}.tenant AND kind IS NULL
                UNION ALL
                SELECT id, tenant, kind, most FROM caps WHERE tenant IS NULL AND kind = {row}.kind)"""  # noqa: S608 - made of constants

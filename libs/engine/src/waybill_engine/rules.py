"""The rules about what may be claimed now, each written once.

Operators pause queues and set caps and rates; a sick dependency's breaker blocks the kinds that need it. The conditions
here are SQL, for the statements that obey these rules (`claim`, `lanes`, `rescue`) and the one that explains them
(`explain`). `Rules` is what a worker remembers of them between two looks at the database.
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
    """The rows of `caps` that limit the tenant and kind of `row`, a job or a lane."""
    return _limits_on("(SELECT id, tenant, kind, most FROM caps WHERE true", row)


def rates_on(row: str) -> str:
    """The rows of `rates` that limit the tenant and kind of `row`, a job or a lane."""
    columns = "id, tenant, kind, most, seconds, burst, spacing, paid_up_to"
    return _limits_on(f"(SELECT {columns} FROM rates WHERE most IS NOT NULL", row)  # noqa: S608 - made of constants


def _limits_on(select: str, row: str) -> str:
    # One condition with OR would go through all rows. Each of these is a look-up in the unique index on (tenant, kind).
    return f"""({select} AND tenant = {row}.tenant AND kind = {row}.kind)
                UNION ALL
                {select} AND tenant = {row}.tenant AND kind IS NULL)
                UNION ALL
                {select} AND tenant IS NULL AND kind = {row}.kind))"""

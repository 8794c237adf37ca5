"""Caps: the most jobs of a tenant, of a kind, or of both that may run at once in the whole cluster.

Nothing counts up and down, so nothing can leak. A worker that claims under a cap locks its row and then counts what
runs (the function `waybill_rooms`; see `gate_requests`), so that it sees everything committed before it had the lock.
Ends of runs need no lock: they only make room. After a crash, there is room when the jobs are rescued.

A kind may have a default cap (`JobKind.default_cap`), which applies until an operator decides: once a cap was set or
lifted by hand, `decided_caps` says so and no default changes it again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from waybill import audit
from waybill.errors import Refused
from waybill.retention.holds import check_tenant
from waybill_engine.kinds import is_name
from waybill_engine.rules import Cap, caps_on

if TYPE_CHECKING:
    from waybill.db.database import Connection
    from waybill_engine.lanes import Lane

# It looks worker by worker into the index jobs_held. Each of the three cases is a look-up of its own, so that only the
# jobs that count are read.
RUNNING_ON_WORKER = """CASE
           WHEN caps.kind IS NULL THEN
               (SELECT count(*) FROM jobs WHERE lease_owner = workers.id AND jobs.tenant = caps.tenant)
           WHEN caps.tenant IS NULL THEN
               (SELECT count(*) FROM jobs WHERE lease_owner = workers.id AND jobs.kind = caps.kind)
           ELSE
               (SELECT count(*) FROM jobs
                 WHERE lease_owner = workers.id AND jobs.kind = caps.kind AND jobs.tenant = caps.tenant)
           END"""
"""SQL for how many jobs that the row of `caps` at hand limits run on the row of `workers` at hand. For a few caps."""

# What runs is counted once for all caps: one look-up per worker, or per worker and kind if every cap names its kind
# (`$2`, otherwise empty). Looking it up for each cap would cost caps times workers. The tenants matter only if a cap
# names one (`$3`). The first rows are the caps that still exist.
_RUNNING = """
SELECT id, most, NULL AS tenant, NULL AS kind, NULL AS running FROM caps WHERE id = ANY ($1::int[])
UNION ALL
SELECT NULL, NULL, CASE WHEN $3 THEN held.tenant END, held.kind, count(*)::int
  FROM workers, LATERAL (
           (SELECT tenant, kind FROM jobs
             WHERE lease_owner = workers.id AND kind = ANY ($2::text[]) AND cardinality($2::text[]) > 0)
           UNION ALL
           (SELECT tenant, kind FROM jobs
             WHERE lease_owner = workers.id AND cardinality($2::text[]) = 0)
       ) AS held
 WHERE workers.state IN ('active', 'draining')
 GROUP BY 3, 4
"""

_FIND = f"""
SELECT DISTINCT limiting.id, limiting.tenant, limiting.kind, limiting.most
  FROM unnest($1::text[], $2::text[]) AS lane (tenant, kind), LATERAL {caps_on("lane")} AS limiting
"""  # noqa: S608 - made of constants

# Workers hear of a change at once and, without the announcement, find it within a poll.
_SET = """
WITH decided AS (
    INSERT INTO decided_caps (kind) SELECT $2 WHERE $1::text IS NULL ON CONFLICT (kind) DO NOTHING
), changed AS (
    INSERT INTO caps (tenant, kind, most) VALUES ($1, $2, $3)
        ON CONFLICT (tenant, kind) DO UPDATE SET most = excluded.most
    RETURNING id, tenant, kind, most
)
SELECT changed.*, pg_notify('waybill_control', 'look') FROM changed
"""

_REMOVE = """
WITH removed AS (
    DELETE FROM caps WHERE tenant IS NOT DISTINCT FROM $1 AND kind IS NOT DISTINCT FROM $2 RETURNING tenant, kind
), decided AS (
    INSERT INTO decided_caps (kind) SELECT kind FROM removed WHERE tenant IS NULL ON CONFLICT (kind) DO NOTHING
)
SELECT count(pg_notify('waybill_control', 'look')) FROM removed
"""

# Nobody can decide until the caller's transaction ends: a statement locks its tables before it looks at rows.
_LET_NOBODY_DECIDE = "LOCK TABLE decided_caps IN SHARE MODE"

_DEFAULT = """
WITH changed AS (
    INSERT INTO caps (kind, most)
    SELECT name, $2 FROM unnest($1::text[]) AS name
     WHERE name NOT IN (SELECT kind FROM decided_caps)
     ORDER BY name
        ON CONFLICT (tenant, kind) DO UPDATE SET most = excluded.most WHERE caps.most <> excluded.most
    RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM changed
"""

_NO_DEFAULT = """
WITH removed AS (
    DELETE FROM caps
     WHERE tenant IS NULL AND kind = ANY ($1::text[]) AND kind NOT IN (SELECT kind FROM decided_caps)
    RETURNING id
)
SELECT count(pg_notify('waybill_control', 'look')) FROM removed
"""

_LIST = "SELECT id, tenant, kind, most FROM caps ORDER BY tenant NULLS FIRST, kind NULLS FIRST"

NO_LIMIT = 2**31 - 1


async def look_under_caps(connection: Connection, caps: Sequence[Cap]) -> dict[Cap, int]:
    """How many more jobs might start under each cap as things stand. Use it to leave out full caps, not to claim."""
    found = await _running(connection, caps)
    # A cap that was removed in the meantime caps nothing.
    return {cap: most - running for cap in caps for most, running in [found.get(cap.id, (NO_LIMIT, 0))]}


async def count_running(connection: Connection, caps: Sequence[Cap]) -> dict[int, int]:
    """How many jobs run under each cap, by the cap's id."""
    return {cap_id: running for cap_id, (_, running) in (await _running(connection, caps)).items()}


async def _running(connection: Connection, caps: Sequence[Cap]) -> dict[int, tuple[int, int]]:
    """How many jobs may run under each cap and how many do, by the cap's id."""
    if not caps:
        return {}
    kinds = {cap.kind for cap in caps}
    rows = await connection.fetch(
        _RUNNING,
        [cap.id for cap in caps],
        [] if None in kinds else sorted(kind for kind in kinds if kind is not None),
        any(cap.tenant is not None for cap in caps),
    )
    most: dict[int, int] = {}
    running: Counter[tuple[str | None, str | None]] = Counter()
    for cap_id, number, tenant, kind, count in rows:
        if cap_id is not None:
            most[cap_id] = number
            continue
        running[tenant, kind] += count
        running[None, kind] += count if tenant is not None else 0
        running[tenant, None] += count
    return {cap.id: (most[cap.id], running[cap.tenant, cap.kind]) for cap in caps if cap.id in most}


async def find_caps(connection: Connection, lanes: Sequence[Lane]) -> list[Cap]:
    """The caps that limit these lanes."""
    rows = await connection.fetch(_FIND, [lane.tenant for lane in lanes], [lane.kind for lane in lanes])
    return [Cap(*row) for row in rows]


async def set_cap(connection: Connection, most: int, *, tenant: str | None = None, kind: str | None = None) -> Cap:
    """Cap a tenant, a kind, or a kind of a tenant. With 0 nothing new starts; running jobs go on."""
    if tenant is None and kind is None:
        raise Refused("A cap needs a tenant, a kind, or both.")
    if kind is not None and not is_name(kind):
        raise Refused(f"{kind[:80]!r} cannot be a kind: a name is lower case letters, digits and _, at most 63.")
    if tenant is not None:
        check_tenant(tenant)
    if not 0 <= most < NO_LIMIT:
        raise Refused("A cap must be a whole number, at least 0.")
    async with connection.transaction():
        row = await connection.fetchrow(_SET, tenant, kind, most)
        assert row is not None, "an upsert always answers"  # noqa: S101
        await audit.record(connection, "cap.set", _subject(tenant, kind), tenant=tenant, detail={"most": most})
    return Cap(row["id"], row["tenant"], row["kind"], row["most"])


async def remove_cap(connection: Connection, *, tenant: str | None = None, kind: str | None = None) -> bool:
    """Lift a cap. False if there was none."""
    async with connection.transaction():
        removed = bool(await connection.fetchval(_REMOVE, tenant, kind))
        if removed:
            await audit.record(connection, "cap.removed", _subject(tenant, kind), tenant=tenant)
    return removed


def _subject(tenant: str | None, kind: str | None) -> str:
    return f"cap:{tenant or '*'}/{kind or '*'}"


async def cap_by_default(connection: Connection, kinds: Sequence[str], most: int) -> None:
    """Cap each of these kinds, unless an operator ever decided about it. 0 removes an earlier default.

    What was decided is read after the lock, in a statement of its own, so that a decision just made is never undone.
    """
    if not kinds:
        return
    async with connection.transaction():
        await connection.execute(_LET_NOBODY_DECIDE)
        if most:
            await connection.execute(_DEFAULT, kinds, most)
        else:
            await connection.execute(_NO_DEFAULT, kinds)


async def list_caps(connection: Connection) -> list[Cap]:
    return [Cap(*row) for row in await connection.fetch(_LIST)]

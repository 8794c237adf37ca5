"""Arrays that asyncpg need not ask Postgres about.

asyncpg knows Postgres's own types but few arrays of them. It asks about the others once per connection, with a query
that takes longer than most of ours, and our statements have several such arrays. Their numbers are the same in every
Postgres.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import asyncpg

if TYPE_CHECKING:
    Connection = asyncpg.Connection[asyncpg.Record]
else:
    Connection = asyncpg.Connection

ARRAYS = {
    1000: ("_bool", 16),
    1001: ("_bytea", 17),
    1005: ("_int2", 21),
    1007: ("_int4", 23),
    1016: ("_int8", 20),
    1021: ("_float4", 700),
    1022: ("_float8", 701),
    1182: ("_date", 1082),
    1185: ("_timestamptz", 1184),
    1187: ("_interval", 1186),
    1231: ("_numeric", 1700),
    2951: ("_uuid", 2950),
    3807: ("_jsonb", 3802),
}
"""An array's number in `pg_type`: its name there, and the number of what it holds."""


_NOTHING_ASKED = SimpleNamespace(name="none")
"""Instead of the statement that asked. It has a name, as one that has replaced no other."""


class ArrayConnection(Connection):
    """A connection that knows these arrays.

    asyncpg has no public way to tell it, so this overrides a function of asyncpg's own. Should that one be renamed,
    every connection asks again, and a test notices.
    """

    async def _introspect_types(self, typeoids: Iterable[int], timeout: float | None) -> tuple[list[Any], Any]:
        wanted = list(typeoids)
        known = [_described(oid) for oid in wanted if oid in ARRAYS]
        others = [oid for oid in wanted if oid not in ARRAYS]
        if not others:
            return known, _NOTHING_ASKED
        asked, statement = await super()._introspect_types(others, timeout)  # type: ignore[misc]
        return [*known, *asked], statement


def _described(oid: int) -> dict[str, object]:
    """What Postgres would say about the array."""
    name, element = ARRAYS[oid]
    return {
        "oid": oid,
        "ns": "pg_catalog",
        "name": name,
        "kind": b"b",
        "basetype": None,
        "elemtype": element,
        "elemdelim": ",",
        "range_subtype": None,
        "attrtypoids": None,
        "attrnames": None,
        "basetype_name": None,
        "elemtype_name": name.removeprefix("_"),
        "range_subtype_name": None,
    }

"""What each connection tells Postgres about itself: how to plan, and what to do with what is forgotten."""

from __future__ import annotations

from collections.abc import Mapping

# A queue table's statistics are always wrong: it is empty when they are taken and full when they are used, or the
# other way round. With these, the hot statements can only go through the index they were written for.
ONE_PLAN = {
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
}

# On everybody's connections the planner is free, but a plan made for an empty table must not outlive it.
FRESH_PLANS = {"plan_cache_mode": "force_custom_plan"}

# A frozen process or a vanished machine must not hold its locks for hours: the server ends what was forgotten.
NOTHING_FORGOTTEN = {
    "idle_in_transaction_session_timeout": "60s",
    "tcp_keepalives_idle": "30",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
}

SET_LOCAL = "SELECT set_config(name, value, true) FROM unnest($1::text[], $2::text[]) AS given (name, value)"
"""Sets them for one transaction: behind a pooler they would reach strangers."""


def names_and_values(settings: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """The parameters of `SET_LOCAL`."""
    return list(settings), list(settings.values())

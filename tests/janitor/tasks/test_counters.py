"""Small rows go when they have served."""

from __future__ import annotations

from support.clock import Clock
from support.janitor import DAY, Janitor
from waybill import idempotency, rate_limits
from waybill.db.database import Connection


async def test_small_rows_go_when_they_have_served(cleaner: Janitor, hot: Connection, clock: Clock) -> None:
    for number in range(3):
        await rate_limits.take(hot, f"upload:{number}", limit=10)
        await idempotency.begin(hot, tenant="acme", key=str(number), fingerprint="f")
    await hot.execute("INSERT INTO breaker_counts VALUES ('gateway', now(), 1, 1)")
    await hot.execute("INSERT INTO breaker_events (name, at, event, detail) VALUES ('gateway', now(), 'opened', '{}')")
    await hot.execute("INSERT INTO ended_sessions VALUES (gen_random_uuid(), now() + interval '1 hour')")
    await hot.execute("INSERT INTO storage_copies VALUES ('/there', 'a', 1, 'ab', now())")
    assert await cleaner.clean() == {}
    await clock.forward(2 * DAY)
    assert await cleaner.would() == {"counters": 8}
    assert (await cleaner.clean())["counters"] == {
        "rate_limits": 3,
        "idempotency_keys": 3,
        "ended_sessions": 1,
        "breaker_counts": 1,
    }
    await clock.forward(100 * DAY)
    assert (await cleaner.clean())["counters"] == {"breaker_events": 1, "storage_copies": 1}

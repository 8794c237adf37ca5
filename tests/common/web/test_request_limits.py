"""Limits on requests: by session, by address and by tenant, and none of them is somebody else's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from waybill.config import ApiSettings
from waybill.errors import RateLimited
from waybill.ids import new_id
from waybill.security import Session, of_session, of_tenant
from waybill.telemetry.metrics import RATE_LIMITED
from waybill.web.request_limits import HEAVY, READ, RequestLimits
from waybill.web.visitors import Visitor


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def limits(clock: Clock, **per_minute: int) -> RequestLimits:
    off = {"api_reads_per_minute": 0, "api_address_reads_per_minute": 0, "api_key_reads_per_minute": 0}
    given: dict[str, Any] = {"database_url": "postgresql://nowhere/x", **off, **per_minute}
    return RequestLimits(ApiSettings.model_validate(given), clock)


def browser(*, met_before: bool = True) -> Visitor:
    session = Session(new_id(), 0)
    return Visitor(of_session(session.id), session, met_before=met_before)


def program(tenant: str) -> Visitor:
    return Visitor(of_tenant(tenant, frozenset(), uuid.uuid4()))


def granted(found: RequestLimits, visitor: Visitor, address: str = "192.0.2.1", cost: int = READ) -> int:
    """How many requests are granted at once, of at most a hundred."""
    count = 0
    while count < 100:
        try:
            found.take(visitor, address, cost)
        except RateLimited as refused:
            wait = refused.retry_after or 0
            break
        count += 1
    else:
        return count
    assert wait >= 1
    return count


def test_a_minutes_worth_comes_at_once_and_then_a_steady_pace() -> None:
    clock, me = Clock(), browser()
    found = limits(clock, api_reads_per_minute=30)
    refused = RATE_LIMITED.labels("requests").value
    assert granted(found, me) == 30
    assert RATE_LIMITED.labels("requests").value == refused + 1
    clock.now += 10
    assert granted(found, me) == 5
    assert granted(found, browser()) == 30
    clock.now += 1000
    assert granted(found, me) == 30
    clock.now += 1000
    assert granted(found, me, cost=HEAVY) == 6


def test_who_drops_the_cookie_is_counted_by_address() -> None:
    found = limits(Clock(), api_reads_per_minute=5, api_address_reads_per_minute=20)
    assert sum(granted(found, browser(met_before=False)) for _ in range(3)) == 20
    assert granted(found, browser()) == 0, "new sessions of that address are no way out"
    assert granted(found, browser(), "192.0.2.2") == 5
    assert granted(found, program("acme")) == 100, "who signs in is counted with the tenant"


def test_a_tenants_keys_are_counted_together() -> None:
    found = limits(Clock(), api_key_reads_per_minute=20)
    assert granted(found, program("acme")) == 20
    assert granted(found, program("acme")) == 0
    assert granted(found, program("other")) == 20


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("waybill.web.request_limits._MOST", 10)
    found = limits(Clock(), api_reads_per_minute=5)
    for _ in range(50):
        found.take(browser(), "192.0.2.1", READ)
    assert len(found._due) == 10

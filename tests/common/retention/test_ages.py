"""A tenant's own ages: set, read, taken back."""

from __future__ import annotations

import pytest

from support.engine import Connect
from waybill.errors import Refused
from waybill.retention.ages import LONGEST_DAYS, ages_of, set_ages, shortest_ages


async def test_an_age_is_set_for_a_rule_and_taken_back_and_the_others_stay(connect: Connect) -> None:
    connection = await connect()
    assert await ages_of(connection, "acme") == {}
    assert await set_ages(connection, "acme", {"documents": 1.5, "parcels": LONGEST_DAYS}) == {
        "documents": 1.5,
        "parcels": LONGEST_DAYS,
    }
    await set_ages(connection, "other", {"documents": 0, "parcels": 3})
    assert await set_ages(connection, "acme", {"documents": None, "jobs": 20}) == {"jobs": 20, "parcels": LONGEST_DAYS}
    _, shortest = await shortest_ages(connection)
    assert shortest == {"documents": 0, "jobs": 20, "parcels": 3}


@pytest.mark.parametrize("days", [-1, LONGEST_DAYS + 1, float("nan"), float("inf")])
async def test_an_age_that_is_none_changes_nothing(connect: Connect, days: float) -> None:
    connection = await connect()
    with pytest.raises(Refused, match="between 0 and 36500 days"):
        await set_ages(connection, "acme", {"documents": 1, "results": days})
    assert await ages_of(connection, "acme") == {}

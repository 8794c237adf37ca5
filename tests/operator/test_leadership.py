"""One leader at a time, and a next one soon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Never

import pytest

from support.cluster_server import ClusterServer
from support.patience import until
from waybill.cluster import ClusterApi, Withheld
from waybill.cluster.resources import CONFIG_MAPS, LEASES
from waybill_operator.leadership import Leadership

NAME = "rel-waybill-operator"
DURATION = 1.0


class Candidate:
    def __init__(self, api: ClusterApi, holder: str, duration: float = DURATION) -> None:
        self.leadership = Leadership(api, "default", NAME, holder, duration=duration)
        self.api = api.guarded(lambda: self.leadership.held)
        self.leads = False
        self.times = 0

    async def lead(self) -> Never:
        self.leads, self.times = True, self.times + 1
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            self.leads = False

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Candidate]:
        task: asyncio.Task[None] = asyncio.create_task(self.leadership.run(self.lead))
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def holder(cluster: ClusterServer) -> str:
    lease = cluster.object(LEASES, NAME)
    return str(lease["spec"]["holderIdentity"]) if lease else ""


async def test_one_of_two_leads_and_the_other_follows_when_it_stops(cluster: ClusterServer, api: ClusterApi) -> None:
    one, other = Candidate(api, "one", 60), Candidate(api, "other", 60)
    async with one.running():
        await until(lambda: one.leads)
        assert holder(cluster).startswith("one_")
        async with other.running():
            await asyncio.sleep(0.2)
            assert not other.leads
    assert holder(cluster) == "", "it lets go when it is stopped"
    async with other.running():
        await until(lambda: other.leads)
    lease = cluster.object(LEASES, NAME)
    assert lease is not None
    assert lease["spec"]["leaseTransitions"] == 1


async def test_a_dead_leader_is_followed_when_its_lease_has_run_out_by_our_clock(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    """Whatever its own clock said when it renewed: hours in the future, or long ago."""
    for renewed in ("2031-01-01T00:00:00.000000Z", "2001-01-01T00:00:00.000000Z"):
        await cluster.put(
            LEASES,
            {
                "metadata": {"name": NAME},
                "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 1, "renewTime": renewed},
            },
        )
        one = Candidate(api, "one")
        began = asyncio.get_running_loop().time()
        async with one.running():
            await until(lambda one=one: one.leads)  # type: ignore[misc]
        assert asyncio.get_running_loop().time() - began >= 1.0


async def test_a_leader_that_renews_is_left_alone(cluster: ClusterServer, api: ClusterApi) -> None:
    one, other = Candidate(api, "one"), Candidate(api, "other")
    async with one.running():
        await until(lambda: one.leads)
        async with other.running():
            await asyncio.sleep(3 * DURATION)
            assert (one.leads, one.times, other.times) == (True, 1, 0)


async def test_a_leader_that_cannot_renew_stops_before_others_may_begin(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    one = Candidate(api, "one")
    async with one.running():
        await until(lambda: one.leads)
        loop = asyncio.get_running_loop()
        cluster.refuse("GET", "leases", 503, times=-1)
        began = loop.time()
        await until(lambda: not one.leads)
        assert loop.time() - began < DURATION
        assert not one.leadership.held
        cluster.refuse_nothing()
        await until(lambda: one.leads)


async def test_without_the_lease_nothing_is_written(cluster: ClusterServer, api: ClusterApi) -> None:
    """As after a pause of the whole process, when it has not yet noticed."""
    one = Candidate(api, "one")
    change = {"metadata": {"name": "x", "namespace": "default"}, "data": {}}
    with pytest.raises(Withheld):
        await one.api.apply(CONFIG_MAPS, change, manager="x")
    async with one.running():
        await until(lambda: one.leads)
        await one.api.apply(CONFIG_MAPS, change, manager="x")
    with pytest.raises(Withheld):
        await one.api.delete(CONFIG_MAPS, "x", "default")
    assert cluster.object(CONFIG_MAPS, "x") is not None
    assert await one.api.get(CONFIG_MAPS, "x", "default"), "it may still read"


async def test_a_lease_that_was_taken_from_us_ends_our_time_and_is_not_released(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    one = Candidate(api, "one")
    async with one.running():
        await until(lambda: one.leads)
        await cluster.put(
            LEASES, {"metadata": {"name": NAME}, "spec": {"holderIdentity": "thief", "leaseDurationSeconds": 600}}
        )
        await until(lambda: not one.leads)
    assert holder(cluster) == "thief"


async def test_of_two_that_take_it_at_the_same_time_one_gets_it(cluster: ClusterServer, api: ClusterApi) -> None:
    candidates = [Candidate(api, f"c{number}", 60) for number in range(6)]
    tasks: list[asyncio.Task[None]] = [asyncio.create_task(one.leadership.run(one.lead)) for one in candidates]
    try:
        await until(lambda: any(one.leads for one in candidates))
        await asyncio.sleep(0.2)
        assert sum(one.leads for one in candidates) == 1
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_lease_that_somebody_deletes_is_made_again(cluster: ClusterServer, api: ClusterApi) -> None:
    one = Candidate(api, "one")
    async with one.running():
        await until(lambda: one.leads)
        await cluster.remove(LEASES, NAME)
        await until(lambda: holder(cluster).startswith("one_"))
        assert one.times == 1


async def test_the_lease_disappears_with_the_operator(cluster: ClusterServer, api: ClusterApi) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": NAME, "uid": "u"}
    leadership = Leadership(api, "default", NAME, "one", owner=owner)
    one = Candidate(api, "one")
    one.leadership = leadership
    async with one.running():
        await until(lambda: one.leads)
        lease = cluster.object(LEASES, NAME)
        assert lease is not None
        assert lease["metadata"]["ownerReferences"] == [owner]


async def test_a_leader_whose_work_fails_says_so_and_lets_go(cluster: ClusterServer, api: ClusterApi) -> None:
    async def lead() -> Never:
        raise RuntimeError("a bug")

    leadership = Leadership(api, "default", NAME, "one", duration=DURATION)
    with pytest.raises(RuntimeError, match="a bug"):
        await leadership.run(lead)
    assert holder(cluster) == ""

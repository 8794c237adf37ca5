"""A copy of the cluster's objects stays true, whatever happens to the watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from support.cluster_server import ClusterServer
from support.patience import until
from waybill import background_tasks
from waybill.cluster import ClusterApi, Informer, NotAllowed, Object
from waybill.cluster.backoff import Backoff
from waybill.cluster.resources import PODS


class Changes:
    """What an informer told, in order."""

    def __init__(self) -> None:
        self.told: list[tuple[str, str]] = []

    def __call__(self, before: Object | None, after: Object | None) -> None:
        one = after or before
        assert one is not None
        what = "added" if before is None else "gone" if after is None else "changed"
        self.told.append((what, one["metadata"]["name"]))


@asynccontextmanager
async def informing(api: ClusterApi, changes: Changes | None = None) -> AsyncIterator[Informer]:
    informer = Informer(api, PODS, "default", backoff=Backoff(0.01, 0.05))
    informer.on_change(changes or Changes())
    async with background_tasks.running(informer.run(), "informer"):
        await informer.wait_until_listed()
        yield informer


def pod(name: str, **spec: str) -> Object:
    return {"metadata": {"name": name}, "spec": spec}


async def test_it_knows_what_was_there_and_what_happens(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(PODS, pod("old"))
    changes = Changes()
    async with informing(api, changes) as informer:
        await cluster.put(PODS, pod("new"))
        await cluster.put(PODS, pod("old", nodeName="n"))
        await cluster.remove(PODS, "new")
        await until(lambda: ("gone", "new") in changes.told)
        assert list(informer.objects) == ["old"]
        assert informer.objects["old"]["spec"]["nodeName"] == "n"
    assert changes.told == [("added", "old"), ("added", "new"), ("changed", "old"), ("gone", "new")]


async def test_a_watch_that_is_cut_is_resumed_and_misses_nothing(cluster: ClusterServer, api: ClusterApi) -> None:
    async with informing(api) as informer:
        for number in range(5):
            await until(lambda: cluster.watches == 1)
            cluster.cut_watches()
            await cluster.put(PODS, pod(f"n{number}"))
        await until(lambda: len(informer.objects) == 5)
        lists = [query for query in cluster.asked("GET", PODS.path("default")) if "watch" not in query]
        assert len(lists) == 1, "it was listed again, though every version was still known"


async def test_what_was_missed_for_good_is_found_by_listing_again(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(PODS, pod("leaves"))
    await cluster.put(PODS, pod("stays"))
    changes = Changes()
    async with informing(api, changes) as informer:
        await until(lambda: cluster.watches == 1)
        await cluster.stop()
        await cluster.remove(PODS, "leaves")
        await cluster.put(PODS, pod("arrives"))
        cluster.forget()
        await cluster.start()
        await until(lambda: set(informer.objects) == {"stays", "arrives"})
    assert changes.told[2:] in ([("added", "arrives"), ("gone", "leaves")], [("gone", "leaves"), ("added", "arrives")])


async def test_a_pod_that_was_replaced_under_the_same_name_was_gone(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(PODS, pod("same"))
    changes = Changes()
    async with informing(api, changes):
        await until(lambda: cluster.watches == 1)
        await cluster.stop()
        await cluster.remove(PODS, "same")
        await cluster.put(PODS, pod("same"))
        cluster.forget()
        await cluster.start()
        await until(lambda: len(changes.told) == 3)
    assert changes.told == [("added", "same"), ("gone", "same"), ("added", "same")]


async def test_a_bookmark_keeps_a_quiet_watch_from_being_too_old(cluster: ClusterServer, api: ClusterApi) -> None:
    async with informing(api):
        await until(lambda: cluster.watches == 1)
        await cluster.bookmark(PODS)
        bookmarked = cluster.version
        await asyncio.sleep(0)
        cluster.version += 100  # others are busy

        def resumed() -> bool:
            cluster.cut_watches()
            return cluster.asked("GET", PODS.path("default"))[-1].get("resourceVersion") == str(bookmarked)

        await until(resumed)


async def test_being_forbidden_is_a_trouble_that_ends_when_the_permission_comes(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    cluster.refuse("GET", "/pods$", 403, times=3, message="pods is forbidden")
    informer = Informer(api, PODS, "default", backoff=Backoff(0.01, 0.05))
    async with background_tasks.running(informer.run(), "informer"):
        await until(lambda: isinstance(informer.trouble, NotAllowed))
        assert not informer.listed
        await informer.wait_until_listed()
        assert informer.trouble is None


async def test_a_server_that_ends_every_watch_at_once_is_not_asked_in_a_tight_loop(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    informer = Informer(api, PODS, "default", backoff=Backoff(0.2, 0.4))
    async with background_tasks.running(informer.run(), "informer"):
        await informer.wait_until_listed()
        ends = asyncio.get_running_loop().time() + 1.0
        while asyncio.get_running_loop().time() < ends:
            cluster.cut_watches()
            await asyncio.sleep(0.005)
    assert len(cluster.requests) < 15

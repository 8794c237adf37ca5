"""Reading and writing objects of the cluster."""

from __future__ import annotations

import pytest

from support.cluster_server import ClusterServer
from waybill.cluster import (
    AlreadyThere,
    Away,
    ChangedMeanwhile,
    ClusterApi,
    ClusterError,
    HistoryGone,
    Invalid,
    NoSuchObject,
    NotAllowed,
    WatchCut,
)
from waybill.cluster.resources import CONFIG_MAPS, LEASES, PODS


def config_map(name: str = "one", **data: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_a_list_has_every_page_and_says_of_what_kind_its_items_are(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    for number in range(1100):
        await cluster.put(CONFIG_MAPS, {"metadata": {"name": f"n{number}"}})
    listing = await api.list(CONFIG_MAPS, "default")
    assert len(listing.items) == 1100
    assert {(one["apiVersion"], one["kind"]) for one in listing.items} == {("v1", "ConfigMap")}
    assert listing.version == str(cluster.version)
    assert len(cluster.asked("GET", CONFIG_MAPS.path("default"))) == 3


async def test_a_list_whose_pages_took_too_long_is_read_in_one_piece(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(CONFIG_MAPS, {"metadata": {"name": "one"}})
    cluster.refuse("GET", "configmaps$", 410)
    assert len((await api.list(CONFIG_MAPS, "default")).items) == 1
    assert "limit" not in cluster.asked("GET", CONFIG_MAPS.path("default"))[-1]


async def test_a_list_asks_for_what_its_selectors_match(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(PODS, {"metadata": {"name": "a", "labels": {"app": "waybill"}}, "spec": {}})
    await cluster.put(PODS, {"metadata": {"name": "b", "labels": {"app": "other"}}, "spec": {}})
    found = (await api.list(PODS, "default", labels="app=waybill")).items
    assert [one["metadata"]["name"] for one in found] == ["a"]


async def test_apply_creates_changes_and_removes_what_is_no_longer_named(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    await api.apply(CONFIG_MAPS, config_map(a="1", b="2"), manager="waybill-operator")
    await cluster.put(CONFIG_MAPS, {"metadata": {"name": "one"}, "data": {"a": "1", "b": "2", "theirs": "3"}})
    after = await api.apply(CONFIG_MAPS, config_map(a="1"), manager="waybill-operator")
    assert after["data"] == {"a": "1", "theirs": "3"}


async def test_a_name_cannot_leave_its_collection(cluster: ClusterServer, api: ClusterApi) -> None:
    with pytest.raises(NoSuchObject):
        await api.get(CONFIG_MAPS, "../secrets/theirs", "default")
    assert not any("secrets" in path and "%2F" not in path and ".." not in path for _, path, _ in cluster.requests)


async def test_whoever_is_late_gets_a_conflict(cluster: ClusterServer, api: ClusterApi) -> None:
    lease = await api.create(LEASES, {"metadata": {"name": "one"}, "spec": {"holderIdentity": "a"}}, "default")
    with pytest.raises(AlreadyThere):
        await api.create(LEASES, {"metadata": {"name": "one"}, "spec": {}}, "default")
    await cluster.put(LEASES, {"metadata": {"name": "one"}, "spec": {"holderIdentity": "b"}})
    with pytest.raises(ChangedMeanwhile):
        await api.replace(LEASES, {**lease, "spec": {"holderIdentity": "a"}}, "default")
    with pytest.raises(ChangedMeanwhile):
        await api.patch(
            LEASES, "one", "default", {"metadata": {"resourceVersion": lease["metadata"]["resourceVersion"]}}
        )


async def test_only_the_object_that_was_meant_is_deleted(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.put(PODS, {"metadata": {"name": "one"}, "spec": {}})
    with pytest.raises(ChangedMeanwhile):
        await api.delete(PODS, "one", "default", uid="of an earlier pod")
    pod = cluster.object(PODS, "one")
    assert pod is not None
    await api.delete(PODS, "one", "default", uid=pod["metadata"]["uid"])
    assert cluster.object(PODS, "one") is None


@pytest.mark.parametrize(
    ("status", "message", "expected"),
    [
        (400, "no", Invalid),
        (401, "Unauthorized", NotAllowed),
        (403, "pods is forbidden", NotAllowed),
        (404, "no", NoSuchObject),
        (409, "no", ChangedMeanwhile),
        (410, "no", HistoryGone),
        (422, "spec.replicas: Invalid value", Invalid),
        (429, "too many requests", Away),
        (500, "etcdserver: leader changed", Away),
        (500, "failed to create typed patch object (…): field not declared in schema", Invalid),
        (503, "apiserver is shutting down", Away),
    ],
)
async def test_every_refusal_has_a_type_and_says_what_the_server_said(
    cluster: ClusterServer, api: ClusterApi, status: int, message: str, expected: type[ClusterError]
) -> None:
    cluster.refuse("GET", "/pods/one$", status, message=message, headers={"Retry-After": "7"})
    with pytest.raises(expected, match=f"{status}: ") as refused:
        await api.get(PODS, "one", "default")
    assert type(refused.value) is expected
    assert message in str(refused.value)
    assert refused.value.retry_after == 7


async def test_a_server_that_is_not_there_is_away(cluster: ClusterServer, api: ClusterApi) -> None:
    await cluster.stop()
    with pytest.raises(Away, match="does not answer"):
        await api.list(PODS, "default")


async def test_a_watch_tells_what_happened_since_a_version_and_ends_when_it_is_cut(
    cluster: ClusterServer, api: ClusterApi
) -> None:
    await cluster.put(PODS, {"metadata": {"name": "before"}, "spec": {}})
    since = str(cluster.version)
    await cluster.put(PODS, {"metadata": {"name": "one"}, "spec": {}})
    await cluster.put(PODS, {"metadata": {"name": "one"}, "spec": {"nodeName": "n"}})
    await cluster.remove(PODS, "one")
    await cluster.bookmark(PODS)
    seen = []
    with pytest.raises(WatchCut):
        async for event in api.watch(PODS, "default", since=since):
            seen.append((event.type, event.object["metadata"].get("name")))
            if event.type == "BOOKMARK":
                cluster.cut_watches()
    assert seen == [("ADDED", "one"), ("MODIFIED", "one"), ("DELETED", "one"), ("BOOKMARK", None)]


async def test_a_version_that_the_server_has_forgotten_is_expired(cluster: ClusterServer, api: ClusterApi) -> None:
    cluster.version += 10
    cluster.forget()
    with pytest.raises(HistoryGone):
        async for _ in api.watch(PODS, "default", since="5"):
            pass

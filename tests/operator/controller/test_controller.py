"""The controller makes the cluster be as the pools say, whatever others do to it."""

from __future__ import annotations

import asyncio
import copy
from pathlib import Path
from typing import Any

import pytest

from support.cluster_server import ClusterServer
from support.controllers import (
    condition,
    controlling,
    deployment,
    events,
    put_pod,
    replicas,
    write_template,
)
from support.patience import until
from support.pool_objects import PREFIX, TEMPLATE
from waybill.cluster import ClusterApi, Object
from waybill.cluster.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, PODS, WORKER_POOLS

POOL = WORKER_POOLS.path("default")


async def put_pool(cluster: ClusterServer, name: str = "heavy", **spec: Any) -> Object:
    return await cluster.put(WORKER_POOLS, {"metadata": {"name": name}, "spec": {"replicas": 1, **spec}})


async def change_pool(cluster: ClusterServer, name: str = "heavy", **spec: Any) -> None:
    """As a person with kubectl, or the autoscaler."""
    found = copy.deepcopy(cluster.object(WORKER_POOLS, name))
    assert found is not None
    await cluster.put(WORKER_POOLS, {**found, "spec": {**found["spec"], **spec}})


def objects_of(cluster: ClusterServer, name: str) -> list[Object | None]:
    return [cluster.object(resource, name) for resource in (DEPLOYMENTS, AUTOSCALERS, DISRUPTION_BUDGETS)]


async def test_a_pool_gets_its_objects_and_says_so(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    made = await put_pool(cluster, queues=["heavy"], replicas=2)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))
        await until(lambda: condition(cluster, "Ready", "heavy") is not None)
        for one in objects_of(cluster, "rel-waybill-worker-heavy"):
            assert one is not None
            assert one["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert replicas(cluster, "heavy") == 2
        pool = cluster.object(WORKER_POOLS, "heavy")
        assert pool is not None
        assert pool["metadata"]["finalizers"] == ["waybill.dev/drain"]
        assert pool["metadata"]["labels"]["waybill.dev/operator"] == PREFIX
        assert "waybill.dev/pool=heavy" in pool["status"]["selector"]
        await until(lambda: "Created" in events(cluster))


async def test_once_all_is_as_it_should_be_nothing_is_written(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc") as running:
        await until(lambda: condition(cluster, "Ready", "heavy") is not None and "Created" in events(cluster))
        await asyncio.sleep(0.3)
        before = len(cluster.written)
        for _ in range(5):
            running.controller.look_at_all()
            await asyncio.sleep(0.05)
        assert cluster.written[before:] == []


async def test_what_others_change_or_remove_is_put_right(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster, replicas=3)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))
        changed = copy.deepcopy(deployment(cluster, "heavy"))
        assert changed is not None
        changed["spec"]["replicas"] = 50
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = "example/mallory"
        await cluster.put(DEPLOYMENTS, changed)
        await until(lambda: replicas(cluster, "heavy") == 3)
        repaired = deployment(cluster, "heavy")
        assert repaired is not None
        assert repaired["spec"]["template"]["spec"]["containers"][0]["image"] == "example/waybill-worker:0.2.0"
        for resource in (DEPLOYMENTS, AUTOSCALERS, DISRUPTION_BUDGETS):
            await cluster.remove(resource, "rel-waybill-worker-heavy")
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))


async def test_what_a_pool_no_longer_asks_for_is_removed(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))
        await change_pool(cluster, autoscaling={"source": "external"}, disruptionBudget={"enabled": False})
        await until(lambda: objects_of(cluster, "rel-waybill-worker-heavy")[1:] == [None, None])
        assert deployment(cluster, "heavy") is not None


async def test_the_autoscaler_of_somebody_else_is_left_alone(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    theirs = {
        "metadata": {"name": "rel-waybill-worker-heavy", "labels": {"waybill.dev/pool": "heavy"}},
        "spec": {"a": 1},
    }
    await cluster.put(AUTOSCALERS, theirs)
    await put_pool(cluster, autoscaling={"source": "external"})
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: condition(cluster, "Ready", "heavy") is not None)
        found = cluster.object(AUTOSCALERS, "rel-waybill-worker-heavy")
        assert found is not None
        assert found["spec"] == {"a": 1}


@pytest.mark.parametrize("labels", [{}, {"waybill.dev/pool": "heavy"}])
async def test_a_deployment_that_is_not_the_pools_is_never_taken_over(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path, labels: dict[str, str]
) -> None:
    """Whether or not it looks like one of ours: as a chart without an operator has left it, say."""
    theirs = {"metadata": {"name": "rel-waybill-worker-heavy", "labels": labels}, "spec": {"replicas": 9}}
    await cluster.put(DEPLOYMENTS, theirs)
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("True", "NameTaken"))
        found = deployment(cluster, "heavy")
        assert found is not None
        assert found["spec"] == {"replicas": 9}
        await cluster.remove(DEPLOYMENTS, "rel-waybill-worker-heavy")
        await until(lambda: replicas(cluster, "heavy") == 1)
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("False", "AsExpected"))


async def test_a_bad_spec_is_a_condition_and_leaves_what_runs_alone(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster, replicas=2)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: replicas(cluster, "heavy") == 2)
        await change_pool(cluster, concurrency=0, replicas=7)
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("True", "InvalidSpec"))
        await until(lambda: "InvalidSpec" in events(cluster))
        assert replicas(cluster, "heavy") == 2
        await change_pool(cluster, concurrency=5, replicas=7)
        await until(lambda: replicas(cluster, "heavy") == 7)
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("False", "AsExpected"))


async def test_what_the_api_server_refuses_is_said_in_its_words(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    cluster.refuse("PATCH", "/deployments/", 422, times=-1, message="spec.template.spec.nodeSelector: Invalid value")
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("True", "Refused"))
        pool = cluster.object(WORKER_POOLS, "heavy")
        assert pool is not None
        assert any("nodeSelector: Invalid value" in one["message"] for one in pool["status"]["conditions"])


async def test_a_missing_permission_is_said_and_tried_again(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    cluster.refuse("PATCH", "/poddisruptionbudgets/", 403, times=-1, message="cannot patch poddisruptionbudgets")
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("True", "Forbidden"))
        cluster.refuse_nothing()
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("False", "AsExpected"))


async def test_conflicts_and_a_server_that_is_busy_are_only_delays(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    cluster.refuse("PATCH", "/workerpools/", 409)
    cluster.refuse("PATCH", "/deployments/", 429, headers={"Retry-After": "0"})
    cluster.refuse("PATCH", "/horizontalpodautoscalers/", 500)
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))


async def test_the_api_server_may_restart(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: replicas(cluster, "heavy") == 1)
        await cluster.stop()
        found = copy.deepcopy(cluster.object(WORKER_POOLS, "heavy"))
        assert found is not None
        await cluster.put(WORKER_POOLS, {**found, "spec": {**found["spec"], "replicas": 4}})
        cluster.forget()
        await cluster.start()
        await until(lambda: replicas(cluster, "heavy") == 4)


async def test_a_new_template_reaches_every_pool(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    for name in ("one", "other"):
        await put_pool(cluster, name)
    folder = tmp_path / "etc"
    async with controlling(api, folder) as running:
        await until(lambda: replicas(cluster, "one") == replicas(cluster, "other") == 1)
        later = copy.deepcopy(TEMPLATE)
        later["spec"]["containers"][0]["image"] = "example/waybill-worker:0.3.0"
        write_template(folder, later)
        running.folder.look()

        def image(pool: str) -> str:
            found = deployment(cluster, pool)
            assert found is not None
            return str(found["spec"]["template"]["spec"]["containers"][0]["image"])

        await until(lambda: {image("one"), image("other")} == {"example/waybill-worker:0.3.0"})


async def test_figures_reach_the_status_and_an_outage_does_too(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc") as running:
        running.figures.say("heavy", wanted=6, queued=55)
        running.controller.figures_changed("heavy")

        def said() -> Any:
            return (cluster.object(WORKER_POOLS, "heavy") or {}).get("status") or {}

        await until(lambda: (said().get("wanted"), said().get("queued")) == (6, 55))
        running.figures.trouble = "Postgres does not answer."
        running.controller.figures_changed("heavy")
        await until(lambda: condition(cluster, "Measured", "heavy") == ("False", "NotCounted"))
        assert said()["queued"] == 55


async def test_figures_that_change_all_the_time_are_written_now_and_then(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc", status_interval=0.5) as running:
        await until(lambda: condition(cluster, "Ready", "heavy") is not None)
        before = len([one for one in cluster.written if one[1].endswith("/status")])
        for number in range(60):
            running.figures.say("heavy", queued=number)
            running.controller.figures_changed("heavy")
            await asyncio.sleep(0.02)
        written = len([one for one in cluster.written if one[1].endswith("/status")]) - before
        assert 1 <= written <= 6
        await until(lambda: (cluster.object(WORKER_POOLS, "heavy") or {})["status"].get("queued") == 59)


# The end of a pool


async def test_a_pool_that_is_deleted_drains_first(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    await put_pool(cluster, replicas=2)
    await put_pod(cluster, "w1", "heavy")
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: all(objects_of(cluster, "rel-waybill-worker-heavy")))
        await api.delete(WORKER_POOLS, "heavy", "default")
        await until(lambda: replicas(cluster, "heavy") == 0)
        await until(lambda: condition(cluster, "Ready", "heavy") == ("False", "Draining"))
        assert cluster.object(AUTOSCALERS, "rel-waybill-worker-heavy") is None, "it would scale the pool up again"
        assert cluster.object(WORKER_POOLS, "heavy") is not None
        await cluster.remove(PODS, "w1")
        await until(lambda: cluster.object(WORKER_POOLS, "heavy") is None)
        await until(lambda: {"Draining", "Drained"} <= events(cluster))


async def test_pods_that_have_ended_are_not_waited_for(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    await put_pool(cluster)
    await put_pod(cluster, "w1", "heavy", phase="Failed")
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: replicas(cluster, "heavy") == 1)
        await api.delete(WORKER_POOLS, "heavy", "default")
        await until(lambda: cluster.object(WORKER_POOLS, "heavy") is None)


async def test_a_pod_that_never_ends_does_not_keep_the_pool_for_ever(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill_operator.controller.drain._MARGIN", 0.2)
    monkeypatch.setattr("waybill_operator.controller.drain._LOOK_AGAIN", 0.1)
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["terminationGracePeriodSeconds"] = 1
    write_template(tmp_path / "etc", template)
    await put_pool(cluster)
    await put_pod(cluster, "w1", "heavy")
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: replicas(cluster, "heavy") == 1)
        await api.delete(WORKER_POOLS, "heavy", "default")
        await until(lambda: cluster.object(WORKER_POOLS, "heavy") is None)
        await until(lambda: "DrainTimedOut" in events(cluster))


async def test_a_pool_that_is_deleted_before_it_was_made_leaves_nothing(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    """Deleted while its objects are being made: by whoever is faster than us."""
    done = False

    def delete_meanwhile(method: str, path: str, body: Object) -> None:
        nonlocal done
        pool = cluster.object(WORKER_POOLS, "heavy")
        if not done and method == "PATCH" and "/deployments/" in path and pool is not None:
            done = True
            pool["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z"
            cluster.version += 1
            pool["metadata"]["resourceVersion"] = str(cluster.version)

    cluster.before_write = delete_meanwhile
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: done)
        cluster.cut_watches()
        cluster.forget()
        await until(lambda: cluster.object(WORKER_POOLS, "heavy") is None)


async def test_a_pool_with_a_bad_spec_can_be_deleted(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    await put_pool(cluster, concurrency=-1)
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: condition(cluster, "Degraded", "heavy") == ("True", "InvalidSpec"))
        await api.delete(WORKER_POOLS, "heavy", "default")
        await until(lambda: cluster.object(WORKER_POOLS, "heavy") is None)


# Several operators, many pools


async def test_two_operators_in_a_namespace_do_not_fight(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    await put_pool(cluster)
    async with controlling(api, tmp_path / "etc"), controlling(api, tmp_path / "etc", prefix="other"):
        await until(lambda: len(cluster.objects(DEPLOYMENTS)) > 0)
        await asyncio.sleep(0.5)
        assert len(cluster.objects(DEPLOYMENTS)) == 1
        before = len(cluster.written)
        await asyncio.sleep(0.3)
        assert len(cluster.written) == before


@pytest.mark.parametrize("pools", [100, pytest.param(1000, marks=pytest.mark.heavy)])
async def test_many_pools_are_made(cluster: ClusterServer, api: ClusterApi, tmp_path: Path, pools: int) -> None:
    for number in range(pools):
        await put_pool(cluster, f"p{number}")
    async with controlling(api, tmp_path / "etc", per_second=10_000):
        await until(lambda: len(cluster.objects(DISRUPTION_BUDGETS)) == pools, within=110)


# The default pool


async def test_the_default_pool_is_made_from_its_file_and_again_when_that_changes(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    folder = tmp_path / "etc"
    write_template(folder, default_pool={"concurrency": 4, "replicas": 9})
    async with controlling(api, folder) as running:
        await until(lambda: cluster.object(WORKER_POOLS, "default") is not None)
        pool = cluster.object(WORKER_POOLS, "default")
        assert pool is not None
        assert pool["spec"] == {"concurrency": 4}, "how many there are is for the autoscaler to say"
        await change_pool(cluster, "default", replicas=6, concurrency=8)
        write_template(folder, default_pool={"concurrency": 5})
        running.folder.look()
        await until(lambda: (cluster.object(WORKER_POOLS, "default") or {})["spec"]["concurrency"] == 5)
        await until(lambda: replicas(cluster) == 6)


async def test_what_people_change_in_the_default_pool_stays_over_a_restart(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    folder = tmp_path / "etc"
    write_template(folder, default_pool={"concurrency": 4})
    async with controlling(api, folder):
        await until(lambda: deployment(cluster) is not None)
    await change_pool(cluster, "default", concurrency=8)
    async with controlling(api, folder):
        await until(lambda: condition(cluster, "Ready") is not None)
        await asyncio.sleep(0.2)
        assert (cluster.object(WORKER_POOLS, "default") or {})["spec"]["concurrency"] == 8


async def test_a_default_pool_that_is_no_longer_wanted_drains_and_goes(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    folder = tmp_path / "etc"
    write_template(folder, default_pool={})
    async with controlling(api, folder) as running:
        await until(lambda: deployment(cluster) is not None)
        write_template(folder)
        running.folder.look()
        await until(lambda: cluster.object(WORKER_POOLS, "default") is None)


async def test_a_default_pool_by_hand_is_not_removed(cluster: ClusterServer, api: ClusterApi, tmp_path: Path) -> None:
    await put_pool(cluster, "default")
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: replicas(cluster) == 1)
        await asyncio.sleep(0.2)
        assert (cluster.object(WORKER_POOLS, "default") or {})["metadata"].get("deletionTimestamp") is None


async def test_a_default_pool_that_the_api_server_does_not_know_yet_is_made_later(
    cluster: ClusterServer, api: ClusterApi, tmp_path: Path
) -> None:
    """The definition of the resource may be installed after the operator."""
    cluster.refuse("PATCH", "/workerpools/default$", 404, times=1)
    write_template(tmp_path / "etc", default_pool={})
    async with controlling(api, tmp_path / "etc"):
        await until(lambda: deployment(cluster) is not None)

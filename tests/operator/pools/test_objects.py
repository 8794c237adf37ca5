"""The objects that a pool consists of."""

from __future__ import annotations

from typing import Any

import pytest

from support.pool_objects import PREFIX, TEMPLATE, pool
from waybill.cluster import Object
from waybill_operator.pools import objects
from waybill_operator.pools.spec import parse


def deployment(name: str = "default", **spec: Any) -> Object:
    one = pool(name, spec)
    return objects.deployment(one, parse(spec), TEMPLATE, PREFIX, replicas=parse(spec).replicas)


def worker(made: Object) -> Object:
    container: Object = made["spec"]["template"]["spec"]["containers"][0]
    return container


def env(made: Object) -> dict[str, Any]:
    found = worker(made)["env"]
    names = [one["name"] for one in found]
    assert len(names) == len(set(names)), "a variable occurs twice"
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in found}


def test_the_default_pool_has_the_plain_name_and_others_have_theirs() -> None:
    assert deployment()["metadata"]["name"] == "rel-waybill-worker"
    assert deployment("heavy")["metadata"]["name"] == "rel-waybill-worker-heavy"


def test_pods_are_the_templates_with_what_the_pool_says() -> None:
    made = deployment(
        "heavy",
        queues=["a", "b"],
        kinds=["convert_pdf"],
        concurrency=4,
        processes=2,
        replicas=7,
        resources={"limits": {"memory": "1Gi"}},
        env=[{"name": "EXTRA", "value": "1"}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}],
    )
    assert made["spec"]["replicas"] == 7
    assert env(made) == {
        "WAYBILL_DATABASE_URL": {"secretKeyRef": {"name": "db", "key": "url"}},
        "WAYBILL_WORKER_QUEUES": "a,b",
        "WAYBILL_WORKER_KINDS": "convert_pdf",
        "WAYBILL_WORKER_CONCURRENCY": "4",
        "WAYBILL_WORKER_PROCESSES": "2",
        "EXTRA": "1",
        "S": {"secretKeyRef": {"name": "s", "key": "k"}},
    }
    assert worker(made)["resources"] == {"limits": {"memory": "1Gi"}}
    assert worker(made)["securityContext"] == TEMPLATE["spec"]["containers"][0]["securityContext"]
    assert made["spec"]["template"]["metadata"]["annotations"] == {"checksum/config": "abc"}


def test_without_resources_of_its_own_a_pool_has_the_templates() -> None:
    assert worker(deployment())["resources"] == {"requests": {"cpu": "100m"}}


def test_the_selector_matches_the_pods_and_never_those_of_another_pool() -> None:
    one, other = deployment("one"), deployment("other")
    for made in (one, other):
        selector = made["spec"]["selector"]["matchLabels"]
        labels = made["spec"]["template"]["metadata"]["labels"]
        assert selector.items() <= labels.items()
    assert not one["spec"]["selector"]["matchLabels"].items() <= (
        other["spec"]["template"]["metadata"]["labels"].items()
    )


def test_the_selector_does_not_change_with_a_release() -> None:
    """It cannot be changed in a Deployment that is there."""
    assert "app.kubernetes.io/version" not in deployment()["spec"]["selector"]["matchLabels"]


def test_a_longer_grace_lets_the_worker_wait_longer_and_end_before_the_kill() -> None:
    made = deployment(podOverrides={"terminationGracePeriodSeconds": 600})
    assert env(made)["WAYBILL_SHUTDOWN_GRACE"] == "590"
    assert "WAYBILL_SHUTDOWN_GRACE" not in env(deployment())
    told = deployment(
        podOverrides={"terminationGracePeriodSeconds": 600}, env=[{"name": "WAYBILL_SHUTDOWN_GRACE", "value": "5"}]
    )
    assert env(told)["WAYBILL_SHUTDOWN_GRACE"] == "5"


def test_everything_belongs_to_the_pool() -> None:
    one = pool("heavy")
    spec = parse({})
    for made in (
        objects.deployment(one, spec, TEMPLATE, PREFIX, replicas=1),
        objects.autoscaler(one, spec, TEMPLATE, PREFIX),
        objects.disruption_budget(one, spec, TEMPLATE, PREFIX),
    ):
        assert made is not None
        assert one.owns(made)
        assert made["metadata"]["ownerReferences"][0]["controller"] is True
        assert made["metadata"]["labels"]["waybill.dev/pool"] == "heavy"
        assert made["metadata"]["namespace"] == "default"


def scaling(**autoscaling: Any) -> Object | None:
    spec = {"autoscaling": autoscaling}
    return objects.autoscaler(pool("heavy", spec), parse(spec), TEMPLATE, PREFIX)


def test_the_autoscaler_scales_the_pool_by_our_metric() -> None:
    made = scaling(minReplicas=2, maxReplicas=40)
    assert made is not None
    assert made["spec"]["scaleTargetRef"] == {
        "apiVersion": "waybill.dev/v1alpha1",
        "kind": "WorkerPool",
        "name": "heavy",
    }
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (2, 40)
    [metric] = made["spec"]["metrics"]
    assert metric["external"] == {
        "metric": {"name": "waybill_workers_wanted", "selector": {"matchLabels": {"pool": "heavy"}}},
        "target": {"type": "AverageValue", "averageValue": "1"},
    }


def test_the_autoscaler_may_go_by_cpu_of_the_worker_alone() -> None:
    made = scaling(source="cpu", cpuUtilization=65)
    assert made is not None
    [metric] = made["spec"]["metrics"]
    assert metric["containerResource"]["container"] == "worker"
    assert metric["containerResource"]["target"]["averageUtilization"] == 65


@pytest.mark.parametrize("source", ["external", "none"])
def test_nobody_else_is_disturbed_by_an_autoscaler(source: str) -> None:
    assert scaling(source=source) is None


def test_behaviour_is_replaced_field_by_field() -> None:
    plain = scaling()
    assert plain is not None
    assert plain["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 300
    made = scaling(behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
    assert made is not None
    down = made["spec"]["behavior"]["scaleDown"]
    assert down["stabilizationWindowSeconds"] == 60
    assert down["policies"] == plain["spec"]["behavior"]["scaleDown"]["policies"]
    assert made["spec"]["behavior"]["scaleUp"] == plain["spec"]["behavior"]["scaleUp"]


def test_the_disruption_budget_lets_unready_pods_go() -> None:
    spec = parse({"disruptionBudget": {"maxUnavailable": "10%"}})
    made = objects.disruption_budget(pool(), spec, TEMPLATE, PREFIX)
    assert made is not None
    assert made["spec"]["maxUnavailable"] == "10%"
    assert made["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    assert objects.disruption_budget(pool(), parse({"disruptionBudget": {"enabled": False}}), TEMPLATE, PREFIX) is None


def test_the_same_input_makes_the_same_objects() -> None:
    spec = {"env": [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]}
    one = pool("default", spec)
    made = [objects.deployment(one, parse(spec), TEMPLATE, PREFIX, replicas=1) for _ in range(2)]
    assert made[0] == made[1]

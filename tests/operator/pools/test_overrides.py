"""What a pool may change about its pods, and what it may not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from support.pool_objects import TEMPLATE
from waybill_operator.pools.overrides import OverridesClash, PodOverrides, merged
from waybill_operator.pools.spec import InvalidSpec, parse


def with_overrides(**overrides: Any) -> Any:
    return merged(TEMPLATE, PodOverrides.model_validate(overrides), "worker")


def test_maps_are_merged_and_lists_replace() -> None:
    result = with_overrides(
        labels={"team": "invoices"},
        annotations={"note": "x"},
        nodeSelector={"disk": "ssd"},
        tolerations=[{"key": "gpu", "operator": "Exists"}],
        priorityClassName="low",
        terminationGracePeriodSeconds=600,
    )
    assert result["metadata"]["labels"] == {**TEMPLATE["metadata"]["labels"], "team": "invoices"}
    assert result["metadata"]["annotations"] == {"checksum/config": "abc", "note": "x"}
    pod = result["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux", "disk": "ssd"}
    assert pod["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert (pod["priorityClassName"], pod["terminationGracePeriodSeconds"]) == ("low", 600)
    assert pod["serviceAccountName"] == "rel-waybill-worker"


def test_volumes_are_added_and_mounted_in_the_worker_alone() -> None:
    result = with_overrides(
        volumes=[{"name": "models", "configMap": {"name": "models"}}],
        volumeMounts=[{"name": "models", "mountPath": "/models"}],
    )
    worker, sidecar = result["spec"]["containers"]
    assert [one["name"] for one in result["spec"]["volumes"]] == ["tmp", "models"]
    assert [one["mountPath"] for one in worker["volumeMounts"]] == ["/tmp", "/models"]
    assert "volumeMounts" not in sidecar


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"volumes": [{"name": "tmp", "emptyDir": {}}]}, "tmp"),
        ({"volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}]}, "/tmp"),
    ],
)
def test_nothing_of_the_template_is_hidden(overrides: dict[str, Any], named: str) -> None:
    with pytest.raises(OverridesClash, match=f"{named} is taken by the template"):
        with_overrides(**overrides)


def test_the_template_itself_stays_as_it_is() -> None:
    before = copy.deepcopy(TEMPLATE)
    result = with_overrides(labels={"a": "b"}, volumes=[{"name": "x", "emptyDir": {}}], nodeSelector={"a": "b"})
    result["spec"]["containers"][0]["env"].append("changed")
    assert before == TEMPLATE


@pytest.mark.parametrize(
    "overrides",
    [
        {"securityContext": {"runAsUser": 0}},
        {"hostNetwork": True},
        {"hostPID": True},
        {"shareProcessNamespace": True},
        {"containers": [{"name": "worker", "securityContext": {"privileged": True}}]},
        {"initContainers": [{"name": "x", "image": "x"}]},
        {"volumes": [{"name": "root", "hostPath": {"path": "/"}}]},
        {"volumes": [{"name": "root", "nfs": {"server": "x"}}]},
        {"volumes": [{"emptyDir": {}}]},
        {"volumeMounts": [{"name": "x"}]},
        {"labels": {"waybill.dev/pool": "another"}},
        {"labels": {"app.kubernetes.io/component": "api"}},
        {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}},
        {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        {"terminationGracePeriodSeconds": 0},
        {"labels": "x"},
    ],
)
def test_what_would_loosen_the_pods_security_or_hide_them_from_us_is_refused(overrides: dict[str, Any]) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec\.podOverrides"):
        parse({"podOverrides": overrides})

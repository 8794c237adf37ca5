"""The operator keeps pools as people ask for them, with the rights of its own service account."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.cluster import Object, Refused
from support.patience import wait_until
from support.tried_release import TriedRelease, pool


def test_the_default_pool_has_workers_an_autoscaler_and_a_disruption_budget(tried: TriedRelease) -> None:
    tried.until_pool("default", "Ready")
    found = tried.pool()
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    owner = found["metadata"]["uid"]
    owned = {kind: tried.cluster.get(kind, "waybill-worker", tried.namespace) for kind in ("deployment", "hpa", "pdb")}
    assert {each["metadata"]["ownerReferences"][0]["uid"] for each in owned.values()} == {owner}
    target = owned["hpa"]["spec"]["scaleTargetRef"]
    assert (target["kind"], target["name"]) == ("WorkerPool", "default")
    template = owned["deployment"]["spec"]["template"]
    assert owned["pdb"]["spec"]["selector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert template["metadata"]["labels"]["waybill.dev/pool"] == "default"


def test_people_see_how_pools_are(tried: TriedRelease) -> None:
    tried.until_pool("default", "Measured")
    table = tried.cluster.kubectl("get", "workerpools", f"--namespace={tried.namespace}").splitlines()
    assert " ".join(table[0].split()) == "NAME READY REPLICAS WANTED QUEUED RUNNING OLDEST DRAIN BREAKERS AGE"
    name, ready, *_ = next(line for line in table if line.startswith("default")).split()
    assert (name, ready) == ("default", "True")
    assert tried.cluster.kubectl("get", "wpool", f"--namespace={tried.namespace}").splitlines()[0] == table[0]


def test_a_further_pool_is_made_as_its_spec_says(tried: TriedRelease) -> None:
    tried.apply_pool(
        "heavy",
        queues=["convert"],
        kinds=["convert_pdf"],
        concurrency=3,
        processes=2,
        autoscaling={"source": "none"},
        resources={"requests": {"cpu": "20m"}},
        env=[{"name": "EXTRA", "value": "yes"}],
        podOverrides={"nodeSelector": {"kubernetes.io/os": "linux"}, "terminationGracePeriodSeconds": 77},
        disruptionBudget={"enabled": False},
    )
    tried.until_pool("heavy", "Ready")
    deployment = tried.cluster.get("deployment", "waybill-worker-heavy", tried.namespace)
    spec = deployment["spec"]["template"]["spec"]
    [container] = spec["containers"]
    env = {each["name"]: each.get("value") for each in container["env"]}
    assert env["WAYBILL_WORKER_QUEUES"] == "convert"
    assert env["WAYBILL_WORKER_KINDS"] == "convert_pdf"
    assert (env["WAYBILL_WORKER_CONCURRENCY"], env["WAYBILL_WORKER_PROCESSES"]) == ("3", "2")
    assert env["EXTRA"] == "yes"
    assert container["resources"]["requests"]["cpu"] == "20m"
    assert spec["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert spec["terminationGracePeriodSeconds"] == 77
    for kind in ("hpa", "pdb"):
        assert tried.cluster.find(kind, "waybill-worker-heavy", tried.namespace) is None


def test_kubectl_scale_scales_a_pool(tried: TriedRelease) -> None:
    tried.apply_pool("scaled", autoscaling={"source": "none"})
    for count in (3, 0, 2):
        tried.cluster.kubectl("scale", "workerpool/scaled", f"--replicas={count}", f"--namespace={tried.namespace}")
        tried.cluster.wait(f"jsonpath={{.status.replicas}}={count}", "workerpool/scaled", namespace=tried.namespace)
    path = f"/apis/waybill.dev/v1alpha1/namespaces/{tried.namespace}/workerpools/scaled/scale"
    scale = json.loads(tried.cluster.kubectl("get", "--raw", path))
    assert scale["status"]["replicas"] == 2
    pods = tried.cluster.list("pods", tried.namespace, scale["status"]["selector"])
    assert len([pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]) == 2


def test_a_changed_pool_is_rolled_out(tried: TriedRelease) -> None:
    tried.apply_pool("changed", concurrency=2, autoscaling={"source": "none"})
    tried.until_pool("changed", "Ready")
    tried.apply_pool("changed", concurrency=5, autoscaling={"source": "builtin", "maxReplicas": 4})

    def rolled() -> bool:
        spec = tried.cluster.get("deployment", "waybill-worker-changed", tried.namespace)["spec"]["template"]["spec"]
        return {"name": "WAYBILL_WORKER_CONCURRENCY", "value": "5"} in spec["containers"][0]["env"]

    wait_until(rolled, "the Deployment has the new concurrency", every=0.2)
    tried.cluster.wait("create", "hpa/waybill-worker-changed", namespace=tried.namespace)
    tried.apply_pool("changed", concurrency=5, autoscaling={"source": "none"})
    tried.cluster.wait("delete", "hpa/waybill-worker-changed", namespace=tried.namespace)


BAD: dict[str, dict[str, Any]] = {
    "at most 40 characters": {},
    "minReplicas must not be more than maxReplicas": {"autoscaling": {"minReplicas": 5, "maxReplicas": 2}},
    "spec.concurrency": {"concurrency": 0},
    "spec.processes": {"processes": 1000},
    "spec.autoscaling.minReplicas": {"autoscaling": {"minReplicas": 0}},
    'Unsupported value: "magic"': {"autoscaling": {"source": "magic"}},
    "these labels are the operator's": {"podOverrides": {"labels": {"waybill.dev/pool": "other"}}},
    "this variable is set by the operator": {"env": [{"name": "WAYBILL_WORKER_KINDS", "value": "all"}]},
    "unknown field": {"podOverrides": {"hostNetwork": True}},
    "spec.queues": {"queues": ["no spaces"]},
}


@pytest.mark.parametrize("said", BAD)
def test_bad_specs_are_refused_at_once(tried: TriedRelease, said: str) -> None:
    name = "x" * 41 if "characters" in said else "bad"
    item, where = json.dumps(pool(name, **BAD[said])), f"--namespace={tried.namespace}"
    with pytest.raises(Refused) as refused:
        tried.cluster.kubectl("apply", "--validate=strict", "-f", "-", where, stdin=item)
    assert said in str(refused.value)


def test_a_spec_that_cannot_work_is_explained_and_harms_no_other_pool(tried: TriedRelease) -> None:
    tried.apply_pool(
        "broken",
        autoscaling={"source": "none"},
        podOverrides={"affinity": {"nodeAffinity": {"requiredDuringScheduling": "nonsense"}}},
    )
    tried.until_pool("broken", "Degraded")
    said = _condition(tried.pool("broken"), "Degraded")
    assert "nodeAffinity" in said["message"] or "affinity" in said["message"], said
    tried.until_pool("default", "Degraded", "False")
    tried.apply_pool("broken", autoscaling={"source": "none"})
    tried.until_pool("broken", "Degraded", "False")
    tried.until_pool("broken", "Ready")


def test_what_somebody_else_changes_is_put_back(tried: TriedRelease) -> None:
    tried.until_pool("default", "Ready")
    where = f"--namespace={tried.namespace}"
    tried.cluster.kubectl("set", "env", "deployment/waybill-worker", "WAYBILL_WORKER_CONCURRENCY=99", where)

    def restored() -> bool:
        deployment = tried.cluster.get("deployment", "waybill-worker", tried.namespace)
        env = deployment["spec"]["template"]["spec"]["containers"][0]["env"]
        return {"name": "WAYBILL_WORKER_CONCURRENCY", "value": "10"} in env

    wait_until(restored, "the concurrency is as the pool says", every=0.2)
    tried.cluster.delete("pdb", "waybill-worker", tried.namespace)
    tried.cluster.wait("create", "pdb/waybill-worker", namespace=tried.namespace)


def test_a_deleted_pool_drains_and_takes_everything_with_it(tried: TriedRelease) -> None:
    tried.apply_pool("leaving", autoscaling={"source": "builtin", "minReplicas": 2})
    tried.until_pool("leaving", "Ready")
    tried.cluster.delete("workerpool", "leaving", tried.namespace)
    for kind in ("deployment", "hpa", "pdb"):
        tried.cluster.wait("delete", f"{kind}/waybill-worker-leaving", namespace=tried.namespace)
    tried.cluster.wait("delete", "pods", "--selector=waybill.dev/pool=leaving", namespace=tried.namespace)


def test_another_operator_takes_over_when_the_leader_dies(tried: TriedRelease) -> None:
    before = tried.leader()
    held = _holder(tried)
    before.container().kill()
    wait_until(lambda: _holder(tried) not in (held, ""), "the Lease has another holder", every=0.2)
    tried.apply_pool("after-failover", autoscaling={"source": "none"})
    tried.until_pool("after-failover", "Ready")


def test_an_api_server_that_restarts_is_found_again(tried: TriedRelease) -> None:
    tried.plane.stop("kube-apiserver")
    tried.plane.start_api_server()
    tried.apply_pool("after-restart", autoscaling={"source": "none"})
    tried.until_pool("after-restart", "Ready")
    assert [each.container().restarts for each in tried.operators() if each.container().restarts > 1] == []


def _holder(tried: TriedRelease) -> str:
    holder: str = tried.cluster.get("lease", "waybill-operator", tried.namespace)["spec"]["holderIdentity"]
    return holder


def _condition(item: Object, name: str) -> Object:
    found: Object = next(each for each in item["status"]["conditions"] if each["type"] == name)
    return found

"""The chart installs, upgrades and uninstalls with a real helm, under restricted pod security."""

from __future__ import annotations

import base64
import json

from support.cluster import Cluster, Object
from support.release import Release

KEPT = {"PersistentVolumeClaim", "Secret"}


def test_it_installs_upgrades_and_goes_away(cluster: Cluster, namespace: str, release: Release) -> None:
    before = _all_objects(cluster, namespace)

    notes = release.install("--wait")
    assert "waybill-admin-key" in notes
    assert _unavailable(release) == []
    assert _refused_pods(cluster, namespace) == []
    assert _secret(release, "-admin-key")["api-key"].startswith(b"wb_")
    secrets = {ending: _secret(release, ending) for ending in ("-database", "-secrets", "-admin-key")}
    assert cluster.get("workerpool", "default", namespace)["spec"]["concurrency"] == 10

    release.upgrade("--wait", log={"level": "debug"}, worker={"concurrency": 7}, api={"preStopSeconds": 0})
    assert release.status()["version"] == 2
    assert _unavailable(release) == []
    assert _refused_pods(cluster, namespace) == []
    assert {ending: _secret(release, ending) for ending in secrets} == secrets, "an upgrade must keep all secrets"
    cluster.wait("jsonpath={.spec.concurrency}=7", "workerpool/default", namespace=namespace)
    [container] = release.get("deployment", "-api")["spec"]["template"]["spec"]["containers"]
    assert {"name": "WAYBILL_LOG_LEVEL", "value": "debug"} in container["env"]

    release.uninstall()
    cluster.wait("delete", "pods", "--all", namespace=namespace)
    left = _all_objects(cluster, namespace) - before
    assert {kind for kind, _ in left} <= KEPT, f"left behind: {sorted(left)}"
    assert _cluster_wide(cluster, namespace) == set()


def _all_objects(cluster: Cluster, namespace: str) -> set[tuple[str, str]]:
    """(kind, name) of everything in the namespace but events and what the control plane makes."""
    kinds = cluster.kubectl("api-resources", "--namespaced", "--verbs=list", "-o", "name").split()
    wanted = [kind for kind in kinds if not kind.startswith(("events", "endpoint")) and ".metrics." not in kind]
    found = json.loads(cluster.kubectl("get", ",".join(wanted), "-o", "json", f"--namespace={namespace}"))["items"]
    return {(item["kind"], item["metadata"]["name"]) for item in found}


def _cluster_wide(cluster: Cluster, namespace: str) -> set[tuple[str, str]]:
    """What a release in this namespace has outside of it. The definition of WorkerPool is meant to stay."""
    release = ("app.kubernetes.io/managed-by=Helm", "clusterroles,clusterrolebindings,apiservices,priorityclasses")
    found = cluster.list(release[1], selector=release[0])
    found += cluster.list("rolebindings", "kube-system", release[0])
    return {(item["kind"], item["metadata"]["name"]) for item in found}


def _unavailable(release: Release) -> list[str]:
    found = release.cluster.list("deployments", release.namespace)
    assert len(found) >= 4, "API, gateway, operator and workers"
    return [
        item["metadata"]["name"]
        for item in found
        if item["status"].get("availableReplicas", 0) < item["spec"]["replicas"]
    ]


def _refused_pods(cluster: Cluster, namespace: str) -> list[str]:
    """What admission said about pods that it did not let in."""
    events = cluster.list("events", namespace)
    return [event["message"] for event in events if event["reason"] == "FailedCreate"]


def _secret(release: Release, ending: str) -> dict[str, bytes]:
    data: Object = release.get("secret", ending)["data"]
    return {key: base64.b64decode(value) for key, value in data.items()}

"""Pods that run as processes of this machine find what a kubelet would give them, and are treated as it would."""

from __future__ import annotations

from typing import Any

from support.cluster import Cluster, Object
from support.patience import wait_until
from support.pod_environment import ANNOTATION
from support.process_node import ProcessNode

SAFE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
# Says what it finds, serves a page for the probe, and says good-bye when it is told to stop.
PROGRAM = """
import http.server, os, pathlib, signal, sys
file = pathlib.Path(os.environ["FILE"]).read_text()
print("name", os.environ["NAME"], "key", os.environ["KEY"], "file", file, flush=True)
def leave(*_):
    print("good-bye", flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, leave)
class Page(http.server.SimpleHTTPRequestHandler):
    log_message = lambda *_: None
http.server.HTTPServer(("127.0.0.1", int(os.environ["TEST_PORT"])), Page).serve_forever()
"""
ENV: list[Object] = [
    {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
    {"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "test", "key": "key"}}},
    {"name": "FILE", "value": "/etc/test/file"},
    {"name": "TEST_PORT", "value": "8080"},
]


def pod(name: str, *, init: str = "", **spec: Any) -> Object:
    basis = {"image": "example.invalid/x:1", "securityContext": SAFE}
    main = {
        **basis,
        "name": "main",
        "command": ["python", "-c", PROGRAM],
        "env": ENV,
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"httpGet": {"path": "/", "port": "http"}},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/test"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {ANNOTATION: "true"}},
        "spec": {
            "automountServiceAccountToken": False,
            "initContainers": [{**basis, "name": "init", "command": ["python", "-c", init]}] if init else [],
            "containers": [main],
            "volumes": [{"name": "settings", "configMap": {"name": "test"}}],
            **spec,
        },
    }


def prepare(cluster: Cluster, namespace: str) -> None:
    cluster.kubectl("create", "secret", "generic", "test", "--from-literal=key=open sesame", f"-n{namespace}")
    cluster.kubectl("create", "configmap", "test", "--from-literal=file=hello", f"-n{namespace}")


def test_a_pod_runs_as_it_says_until_it_is_deleted(cluster: Cluster, namespace: str, node: ProcessNode) -> None:
    prepare(cluster, namespace)
    cluster.create(pod("runs", init="print('first')"), namespace)
    cluster.wait("condition=Ready", "pod/runs", namespace=namespace)
    here = node.pod(namespace, "runs")
    cluster.delete("pod", "runs", namespace)
    assert here.container().text() == "name runs key open sesame file hello\ngood-bye\n"
    assert "first" in here.logs()


def test_a_killed_container_starts_again_and_the_status_tells_why(
    cluster: Cluster, namespace: str, node: ProcessNode
) -> None:
    prepare(cluster, namespace)
    cluster.create(pod("fat"), namespace)
    cluster.wait("condition=Ready", "pod/fat", namespace=namespace)
    [before] = cluster.get("pod", "fat", namespace)["status"]["containerStatuses"]
    node.pod(namespace, "fat").container().kill("OOMKilled")
    cluster.wait("jsonpath={.status.containerStatuses[0].restartCount}=1", "pod/fat", namespace=namespace)
    [after] = cluster.get("pod", "fat", namespace)["status"]["containerStatuses"]
    last = after["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"], last["containerID"]) == ("OOMKilled", 137, before["containerID"])
    assert after["containerID"] != before["containerID"]
    cluster.wait("condition=Ready", "pod/fat", namespace=namespace)
    cluster.delete("pod", "fat", namespace)


def test_init_containers_are_tried_until_they_succeed(
    cluster: Cluster, namespace: str, node: ProcessNode, tmp_path: Any
) -> None:
    prepare(cluster, namespace)
    sign = tmp_path / "sign"
    cluster.create(
        pod("waits", init=f"import pathlib, sys; sys.exit(not pathlib.Path({str(sign)!r}).exists())"), namespace
    )

    def tried_again() -> bool:
        states = cluster.get("pod", "waits", namespace)["status"].get("initContainerStatuses", [])
        return any(state["restartCount"] > 0 for state in states)

    wait_until(tried_again, "the init container was tried again")
    sign.touch()
    cluster.wait("condition=Ready", "pod/waits", namespace=namespace)


def test_a_pod_that_is_not_restarted_ends_as_its_process_did(
    cluster: Cluster, namespace: str, node: ProcessNode
) -> None:
    prepare(cluster, namespace)
    for name, code in (("good", 0), ("bad", 3)):
        ends = pod(name, restartPolicy="Never")
        ends["spec"]["containers"][0]["command"] = ["python", "-c", f"raise SystemExit({code})"]
        cluster.create(ends, namespace)
    cluster.wait("jsonpath={.status.phase}=Succeeded", "pod/good", namespace=namespace)
    cluster.wait("jsonpath={.status.phase}=Failed", "pod/bad", namespace=namespace)

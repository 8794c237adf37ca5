"""Plays the kubelet for pods of ours: their containers are processes of this machine, started as the pod says.

A pod with the annotation `tests.waybill.dev/process` is run: init containers first, then the others, probed for
readiness, restarted when they end, told to stop when the pod is deleted. So a chart's variables, files, rights and
commands are tried without a container runtime. Networks, images and limits are not: those need a real node (tests/e2e).
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from support.cluster import Cluster, Object
from support.control_plane import ControlPlane
from support.patience import wait_until
from support.pod_environment import ANNOTATION, PodEnvironment
from support.process_container import ContainerRun, timestamp

_TURN = 0.1


class ProcessNode:
    """The pods that run here."""

    def __init__(self, plane: ControlPlane, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self._http = plane.http()
        self._pods: dict[str, PodRun] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="process-node")

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._thread.start()

    def close(self) -> None:
        """End all processes at once."""
        self._stopped.set()
        self._thread.join()
        for run in self._pods.values():
            run.abandon()
        self._http.close()

    def pod(self, namespace: str, name: str) -> PodRun:
        """The pod of this name, once it runs here."""
        found: list[PodRun] = []

        def runs() -> bool:
            found[:] = [run for run in self._pods.values() if (run.namespace, run.name) == (namespace, name)]
            return bool(found)

        wait_until(runs, f"the pod {name} runs here", every=_TURN)
        return found[0]

    def logs(self) -> str:
        return "\n".join(run.logs() for run in self._pods.values())

    def patch_status(self, pod: Object, status: Object) -> None:
        self._http.patch(
            f"{_path(pod)}/status",
            json={"metadata": {"uid": pod["metadata"]["uid"]}, "status": status},
            headers={"content-type": "application/merge-patch+json"},
        )

    def remove(self, pod: Object) -> None:
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": pod["metadata"]["uid"]}}
        self._http.request("DELETE", _path(pod), json=options)

    def _watch(self) -> None:
        while not self._stopped.wait(_TURN):
            with contextlib.suppress(httpx.TransportError, httpx.HTTPStatusError):  # tests restart the API server
                self._look()

    def _look(self) -> None:
        answer = self._http.get("/api/v1/pods", params={"resourceVersion": "0"})
        answer.raise_for_status()
        there = {pod["metadata"]["uid"]: pod for pod in answer.json()["items"] if _is_ours(pod)}
        for uid, pod in there.items():
            if uid not in self._pods and pod["status"].get("phase") == "Pending":
                self._pods[uid] = PodRun(self, pod)
            if uid in self._pods and "deletionTimestamp" in pod["metadata"]:
                self._pods[uid].stop(pod["metadata"].get("deletionGracePeriodSeconds", 30))
        for uid in self._pods.keys() - there.keys():
            self._pods[uid].abandon()


class PodRun:
    """One pod, with a thread that follows its containers."""

    def __init__(self, node: ProcessNode, pod: Object) -> None:
        self._node = node
        self._pod = pod
        self.namespace: str = pod["metadata"]["namespace"]
        self.name: str = pod["metadata"]["name"]
        self._folder = node.folder / f"{self.name}-{pod['metadata']['uid'][:8]}"
        self._folder.mkdir(parents=True)
        self._grace = 30.0
        self._stopping = threading.Event()
        self._abandoned = threading.Event()
        self.ports: dict[int, int] = {}
        """Ports of loopback, by the ports of its containers."""
        self._told: Object = {}
        self._inits: list[ContainerRun] = []
        self._containers: list[ContainerRun] = []
        self._thread = threading.Thread(target=self._run, name=self.name)
        self._thread.start()

    def stop(self, grace: float) -> None:
        self._grace = grace
        self._stopping.set()

    def abandon(self) -> None:
        """Kill what runs; nobody is told."""
        self._abandoned.set()
        if threading.current_thread() is not self._thread:
            self._thread.join()

    def fail(self, reason: str, message: str = "") -> None:
        """End the pod as a kubelet does that evicts it: what runs is killed, and it is not started again."""
        self._abandoned.set()
        self._thread.join()
        self._tell("Failed", reason=reason, message=message)

    def container(self, name: str = "") -> ContainerRun:
        """A container, by default the only one."""
        return next(each for each in self._containers if name in ("", each.name))

    def logs(self) -> str:
        return "\n".join(
            f"--- {self.name} {each.name}\n{each.text()[-4000:]}" for each in (*self._inits, *self._containers)
        )

    def _run(self) -> None:
        spec = self._pod["spec"]
        try:
            environment = PodEnvironment(self._node.cluster, self._pod, self._folder, self._node.folder / "claims")
            self.ports = environment.ports
            pod_uid = self._pod["metadata"]["uid"]
            self._inits = [
                ContainerRun(each, pod_uid, environment, self._folder) for each in spec.get("initContainers", ())
            ]
            self._containers = [ContainerRun(each, pod_uid, environment, self._folder) for each in spec["containers"]]
            if self._initialise():
                self._follow()
        except Exception as error:  # noqa: BLE001 - the pod's status says it, as a kubelet would
            (self._folder / "node.log").write_text(repr(error))
            self._tell("Failed", reason="CannotStart", message=repr(error))
        finally:
            for each in (*self._inits, *self._containers):
                each.kill()

    @property
    def _over(self) -> bool:
        return self._abandoned.is_set() or self._stopping.is_set()

    def _initialise(self) -> bool:
        """Run the init containers one after another. False if the pod ends before they have."""
        for each in self._inits:
            each.start()
            while True:
                code = each.ended()
                if code == 0:
                    break
                if self._over:
                    self._end()
                    return False
                if code is not None:
                    if self._pod["spec"].get("restartPolicy") == "Never":
                        self._tell("Failed")
                        return False
                    each.restart()
                self._tell("Pending")
                self._abandoned.wait(_TURN)
        return True

    def _follow(self) -> None:
        """Keep the containers running until the pod is deleted, or has ended."""
        for each in self._containers:
            each.start()
        policy = self._pod["spec"].get("restartPolicy", "Always")
        while not self._over:
            codes = [each.ended() for each in self._containers]
            if policy != "Always" and all(code is not None for code in codes):
                failed = any(codes)
                if not failed or policy == "Never":
                    self._tell("Failed" if failed else "Succeeded")
                    return
            for each, code in zip(self._containers, codes, strict=True):
                if code is not None and (policy == "Always" or (policy == "OnFailure" and code)):
                    each.restart()
            for each in self._containers:
                each.probe(self.ports)
            self._tell("Running")
            self._abandoned.wait(_TURN)
        self._end()

    def _end(self) -> None:
        """Stop the containers as a kubelet does, and let the pod go."""
        if self._abandoned.is_set():
            return
        running = [each for each in (*self._inits, *self._containers) if each.is_running]
        deadline = time.monotonic() + self._grace
        for each in running:
            each.terminate()
        while any(each.is_running for each in running) and time.monotonic() < deadline:
            if self._abandoned.wait(_TURN):
                return
        for each in running:
            each.kill()
        self._tell("Running")
        while not self._abandoned.wait(_TURN):
            with contextlib.suppress(httpx.TransportError):  # the API server is away: try again
                self._node.remove(self._pod)
                return

    def _tell(self, phase: str, **more: str) -> None:
        """Write the status, if it has changed."""
        ready = phase == "Running" and all(each.ready for each in self._containers)
        status: Object = {
            "phase": phase,
            "podIP": "127.0.0.1",
            "initContainerStatuses": [each.status() for each in self._inits],
            "containerStatuses": [each.status() for each in self._containers],
            **more,
        }
        if status == {key: value for key, value in self._told.items() if key != "conditions"}:
            return
        now = timestamp()
        conditions = [
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": now},
            {"type": "Initialized", "status": str(phase != "Pending"), "lastTransitionTime": now},
            *({"type": name, "status": str(ready), "lastTransitionTime": now} for name in ("ContainersReady", "Ready")),
        ]
        try:
            self._node.patch_status(self._pod, {**status, "conditions": conditions})
        except httpx.TransportError:  # the API server is away: the next turn tells it
            return
        self._told = status


@contextmanager
def process_node(plane: ControlPlane, cluster: Cluster, folder: Path) -> Iterator[ProcessNode]:
    node = ProcessNode(plane, cluster, folder)
    node.start()
    try:
        yield node
    finally:
        node.close()
        print(node.logs())  # pytest shows this if the test failed


def _is_ours(pod: Object) -> bool:
    return ANNOTATION in pod["metadata"].get("annotations", {}) and "nodeName" in pod["spec"]


def _path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

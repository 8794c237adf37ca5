"""Verdicts: what the state of a pod says about a worker in it.

Pure, over the JSON that the API server sends. A verdict is only what the server says for certain: a worker that is
wrongly judged dead does no harm, because its writes are fenced, but its work is done twice. So whatever is odd, absent
or contradictory leaves the worker alive, and its lease decides. That goes for a pod that is not ready, and for a node
that does not answer.

A pod's name and uid do not tell a worker from the one that ran in the same container before it crashed. The clock of
the node does: it stamps when a container started and ended, and a worker writes down when it registered by the same
clock. A container that ended after that was this worker's; one that started after that is not. See decision 0039.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from waybill.messages import Message

CONTAINER = "worker"
"""The container that a pod's workers run in. If a pod has only one, its name does not matter."""


class Fate(StrEnum):
    ALIVE = "alive"
    """As far as the API server knows."""
    GONE = "gone"
    """There is no such pod any more, or it has ended without a reason to blame anybody."""
    EVICTED = "evicted"
    PREEMPTED = "preempted"
    """Another pod needed its place."""
    NODE_LOST = "node_lost"
    """Its node went down, or was taken away."""
    OOM_KILLED = "oom_killed"
    """Its container used more memory than it may, and the kernel killed it."""
    CRASHED = "crashed"
    """Its container ended by itself, or was killed by somebody unknown."""


_BLAMES = frozenset({Fate.OOM_KILLED, Fate.CRASHED})

_OF_PODS = {
    "Evicted": Fate.EVICTED,
    "Preempting": Fate.PREEMPTED,
    "Preempted": Fate.PREEMPTED,
    "NodeLost": Fate.NODE_LOST,
    "NodeShutdown": Fate.NODE_LOST,
    "Shutdown": Fate.NODE_LOST,
    "Terminated": Fate.NODE_LOST,  # by a node that shuts down in order
}
"""What the reason of a failed pod says. Any other was given by the cluster, too, and is not the jobs' fault."""

_OF_DISRUPTIONS = {
    "PreemptionByScheduler": Fate.PREEMPTED,
    "DeletionByTaintManager": Fate.NODE_LOST,
    "DeletionByPodGC": Fate.NODE_LOST,
    "EvictionByEvictionAPI": Fate.EVICTED,
    "TerminationByKubelet": Fate.EVICTED,
}
"""What the condition `DisruptionTarget` says."""

_LOST_CONTAINERS = ("ContainerStatusUnknown", "Unknown")
"""The reasons of a container whose end nobody saw, because its node was down."""


@dataclass(frozen=True, slots=True)
class PodWorker:
    """A worker that may run jobs, and the pod that it said it is in."""

    id: uuid.UUID
    name: str
    namespace: str
    pod: str
    uid: str
    node_started_at: datetime | None = None
    """When it registered, by the clock of its node. None for workers of older releases."""


@dataclass(frozen=True, slots=True)
class PodVerdict:
    fate: Fate
    exit_code: int | None = None
    """Of the container, if it crashed and that is known."""
    seen: bool = True
    """The API server has shown us this very pod. If not, it may be a pod of another cluster on the same database."""

    @property
    def dead(self) -> bool:
        return self.fate is not Fate.ALIVE

    @property
    def charged(self) -> bool:
        """Whether a job may be to blame."""
        return self.fate in _BLAMES

    @property
    def says(self) -> Message:
        """What happened, as a sentence for people."""
        if self.fate is Fate.CRASHED and self.exit_code is not None:
            return Message("worker_lost.exited", {"exit_code": self.exit_code})
        return Message(f"worker_lost.{self.fate.value}")


ALIVE = PodVerdict(Fate.ALIVE)


def judge(worker: PodWorker, pod: Mapping[str, Any] | None, *, deleted: bool = False) -> PodVerdict:
    """What became of a worker whose pod looks like this, or is not among those that the API server has.

    Read the worker's row before the pods: a pod is there before its worker is. `deleted` says that this is the last
    state of a pod whose deletion the server told us (the end of a watch).
    """
    if pod is None:
        return PodVerdict(Fate.GONE, seen=False)
    metadata = _object(pod, "metadata")
    uid = _text(metadata, "uid")
    if uid != worker.uid:
        # A pod of the same name has taken its place. One without a uid is nothing that an API server sends.
        return PodVerdict(Fate.GONE, seen=False) if uid else ALIVE
    verdict = _judge(worker, pod, leaving="deletionTimestamp" in metadata)
    return PodVerdict(Fate.GONE) if deleted and not verdict.dead else verdict


def _judge(worker: PodWorker, pod: Mapping[str, Any], *, leaving: bool) -> PodVerdict:
    status = _object(pod, "status")
    phase, container = _text(status, "phase"), _container(pod)
    if phase in ("Succeeded", "Failed"):
        # Nothing runs in it any more, and nothing ever will.
        end = _end_in(worker, container) or _last_end(worker, container)
    elif phase == "Running":
        found = _end_in(worker, container)
        if found is None:
            return ALIVE
        end = found
    else:  # Pending: no worker has run in it yet. Unknown: its node does not answer.
        return ALIVE
    if (disrupted := _disruption(status, phase)) is not None:
        return PodVerdict(disrupted)
    if end.reason == "OOMKilled":
        return PodVerdict(Fate.OOM_KILLED, end.code)
    if end.reason in _LOST_CONTAINERS:
        return PodVerdict(Fate.NODE_LOST)
    if leaving or not end.known or end.code == 0:
        return PodVerdict(Fate.GONE)
    return PodVerdict(Fate.CRASHED, end.code)


def _disruption(status: Mapping[str, Any], phase: str) -> Fate | None:
    """Why the cluster ended the pod, if it did."""
    if phase == "Failed" and (reason := _text(status, "reason")):
        return _OF_PODS.get(reason, Fate.GONE)
    for condition in _objects(status, "conditions"):
        if condition.get("type") == "DisruptionTarget" and condition.get("status") == "True":
            return _OF_DISRUPTIONS.get(_text(condition, "reason"), Fate.GONE)
    return None


@dataclass(frozen=True, slots=True)
class _End:
    """How the container ended that the worker ran in."""

    known: bool = False
    reason: str = ""
    code: int | None = None

    @classmethod
    def of(cls, ended: Mapping[str, Any]) -> _End:
        return cls(known=True, reason=_text(ended, "reason"), code=_number(ended, "exitCode"))


def _end_in(worker: PodWorker, container: Mapping[str, Any]) -> _End | None:
    """How the worker's container ended, in a pod that goes on. None if it has not, as far as the status says.

    A status may be a few seconds old, and be about the container before the worker's. Its times show that.
    """
    registered = worker.node_started_at
    if registered is None:
        return None
    state, last = _object(container, "state"), _object(_object(container, "lastState"), "terminated")
    if "running" in state:
        begun = _time(_object(state, "running"), "startedAt")
        # A node whose clock was put back may stamp the first container with a time after the registration.
        if begun is None or begun <= registered or not _number(container, "restartCount"):
            return None
        return _End(known=True) if _is_later(last, registered) else _End.of(last)
    for ended in (_object(state, "terminated"), last):
        if _is_later(ended, registered):
            return _End(known=True)
        if (over := _time(ended, "finishedAt")) is not None and over >= registered:
            return _End.of(ended)
    return None


def _last_end(worker: PodWorker, container: Mapping[str, Any]) -> _End:
    """How the last container ended of a pod in which nothing runs, if the worker was in that one."""
    ended = _object(_object(container, "state"), "terminated")
    theirs = worker.node_started_at is not None or _number(container, "restartCount") == 0
    return _End.of(ended) if ended and theirs else _End()


def _is_later(ended: Mapping[str, Any], registered: datetime) -> bool:
    """A container after the worker's. Nothing is said about the worker's own any more."""
    begun = _time(ended, "startedAt")
    return begun is not None and begun > registered


def _container(pod: Mapping[str, Any]) -> Mapping[str, Any]:
    """The status of the container that workers run in."""
    found = _objects(_object(pod, "status"), "containerStatuses")
    named = [one for one in found if one.get("name") == CONTAINER]
    # A status may lack containers that the pod has.
    only = found if len(found) == 1 == len(_objects(_object(pod, "spec"), "containers")) else []
    return next(iter(named or only), {})


# The JSON is the server's, but a verdict on it must never fail: whoever judges judges others, too.


def _object(parent: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = parent.get(name)
    return found if isinstance(found, Mapping) else {}


def _objects(parent: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    found = parent.get(name)
    return [one for one in found if isinstance(one, Mapping)] if isinstance(found, list) else []


def _text(parent: Mapping[str, Any], name: str) -> str:
    found = parent.get(name)
    return found if isinstance(found, str) else ""


def _number(parent: Mapping[str, Any], name: str) -> int | None:
    found = parent.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < 2**31 else None


def _time(parent: Mapping[str, Any], name: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(_text(parent, name))
    except ValueError:
        return None
    return found if found.tzinfo is not None else None

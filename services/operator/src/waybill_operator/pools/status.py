"""A pool's status: what a person sees with `kubectl get workerpools`, and why with `kubectl describe`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from waybill.cluster import Object
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.pool import WorkerPool

_LONGEST = 1024
"""Characters of a condition's message."""


@dataclass(frozen=True, slots=True)
class Condition:
    type: str
    holds: bool
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class PoolTrouble:
    """Why a pool is not as its spec asks."""

    reason: str
    message: str
    final: bool = False
    """Whether trying again cannot help, until somebody changes something."""


def status(
    pool: WorkerPool,
    *,
    selector: str,
    deployment: Object | None,
    trouble: PoolTrouble | None,
    figures: PoolFigures | None,
    figures_trouble: str | None,
    now: datetime,
) -> Object:
    """The whole status. FleetFigures that are not known stay as they were, and the condition `Measured` says so."""
    have = _counts(deployment)
    result: Object = {
        "observedGeneration": pool.generation,
        "replicas": have["replicas"],
        "readyReplicas": have["readyReplicas"],
        "selector": selector,
        "conditions": _conditions(
            pool.status.get("conditions") or [],
            [
                _ready(pool, deployment, trouble, have),
                _progressing(pool, deployment, trouble, have),
                _degraded(deployment, trouble),
                _measured(figures, figures_trouble),
            ],
            pool.generation,
            now,
        ),
    }
    return {**_figures(pool.status, figures), **result}


def _counts(deployment: Object | None) -> Mapping[str, int]:
    said = (deployment or {}).get("status") or {}
    return {name: int(said.get(name) or 0) for name in ("replicas", "readyReplicas", "updatedReplicas")}


def _wanted(pool: WorkerPool, deployment: Object | None) -> int:
    if deployment is not None:
        return int(deployment["spec"].get("replicas", 0))
    spec: Any = pool.spec
    return int(spec.get("replicas", 1))


def _is_current(deployment: Object) -> bool:
    """Whether the Deployment's status is about its present spec."""
    return int(deployment.get("status", {}).get("observedGeneration") or 0) >= int(
        deployment["metadata"].get("generation", 0)
    )


def _ready(
    pool: WorkerPool, deployment: Object | None, trouble: PoolTrouble | None, have: Mapping[str, int]
) -> Condition:
    if pool.deleted_at is not None:
        return Condition("Ready", False, "Draining", "The pool is being deleted.")
    if deployment is None:
        return Condition(
            "Ready", False, "NoWorkers", "There is no Deployment yet." if trouble is None else trouble.message
        )
    wanted, ready = _wanted(pool, deployment), have["readyReplicas"]
    if wanted == 0:
        return Condition("Ready", True, "ScaledToZero", "No workers are asked for.")
    if ready == 0:
        return Condition("Ready", False, "NoWorkers", f"None of {wanted} {_workers(wanted)} is ready.")
    return Condition("Ready", True, "WorkersReady", f"{ready} of {wanted} {_workers(wanted)} ready.")


def _progressing(
    pool: WorkerPool, deployment: Object | None, trouble: PoolTrouble | None, have: Mapping[str, int]
) -> Condition:
    if pool.deleted_at is not None:
        left = have["replicas"]
        return Condition("Progressing", True, "Draining", f"{left} {_workers(left)} still finishing their jobs.")
    if deployment is None:
        waits = trouble is None or not trouble.final
        return Condition("Progressing", waits, "Creating" if waits else "Stopped", "There is no Deployment yet.")
    wanted = _wanted(pool, deployment)
    if not _is_current(deployment) or have["updatedReplicas"] < wanted:
        updated = have["updatedReplicas"]
        return Condition("Progressing", True, "RollingOut", f"{updated} of {wanted} {_workers(wanted)} updated.")
    if have["replicas"] > wanted:
        return Condition(
            "Progressing", True, "ScalingDown", f"{have['replicas'] - wanted} more than wanted are ending."
        )
    if have["readyReplicas"] < wanted:
        ready = have["readyReplicas"]
        return Condition("Progressing", True, "Starting", f"{ready} of {wanted} {_workers(wanted)} ready.")
    return Condition("Progressing", False, "Stable", "All workers are as the pool asks.")


def _degraded(deployment: Object | None, trouble: PoolTrouble | None) -> Condition:
    if trouble is not None:
        return Condition("Degraded", True, trouble.reason, trouble.message)
    for one in (deployment or {}).get("status", {}).get("conditions") or ():
        failed = one["type"] == "ReplicaFailure" and one["status"] == "True"
        stuck = one["type"] == "Progressing" and one["status"] == "False"
        if failed or stuck:
            return Condition("Degraded", True, one.get("reason") or one["type"], one.get("message") or "")
    return Condition("Degraded", False, "AsExpected", "")


def _measured(figures: PoolFigures | None, trouble: str | None) -> Condition:
    if trouble is not None:
        why = trouble if trouble.endswith(".") else f"{trouble}."
        return Condition("Measured", False, "NotCounted", f"{why} The figures are old, and the pool is not scaled.")
    if figures is None:
        return Condition("Measured", False, "NotYet", "The pool's jobs have not been counted yet.")
    return Condition("Measured", True, "Counted", "The figures are from the database.")


def _figures(before: Mapping[str, Any], figures: PoolFigures | None) -> Object:
    names = ("queued", "running", "wanted", "oldest", "timeToDrainSeconds", "breakers")
    if figures is None:
        return {name: before[name] for name in names if name in before}
    found: Object = {
        "queued": figures.queued,
        "running": figures.running,
        "wanted": figures.wanted,
        "breakers": figures.breakers,
    }
    if figures.oldest is not None:
        found["oldest"] = stamp(figures.oldest)
    if figures.seconds_to_drain is not None:
        found["timeToDrainSeconds"] = round(figures.seconds_to_drain)
    return found


def _conditions(
    before: Sequence[Mapping[str, Any]], now: Sequence[Condition], generation: int, at: datetime
) -> list[Object]:
    """In Kubernetes' form. The time of the last transition stays while a condition holds or does not hold."""
    known = {one["type"]: one for one in before}
    found = []
    for one in now:
        state = "True" if one.holds else "False"
        old = known.get(one.type)
        since = old["lastTransitionTime"] if old is not None and old["status"] == state else stamp(at)
        found.append(
            {
                "type": one.type,
                "status": state,
                "reason": one.reason,
                "message": one.message[:_LONGEST],
                "observedGeneration": generation,
                "lastTransitionTime": since,
            }
        )
    return found


def stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _workers(count: int) -> str:
    return "worker" if count == 1 else "workers"

"""Pods as an API server describes them. The cluster is not ours, so this stands for what it says."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

UID = "0f6c2f3e-6a0e-4d5d-9a37-3a1f2f8b1f00"
BEFORE = "2026-11-18T12:00:28Z"
AFTER = "2026-11-18T12:05:00Z"


def pod(
    phase: str = "Running",
    *containers: dict[str, Any],
    name: str = "waybill-worker-x1",
    uid: str = UID,
    leaving: bool = False,
    **status: Any,
) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "waybill", "uid": uid}
    if leaving:
        metadata |= {"deletionTimestamp": AFTER}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"name": one["name"]} for one in containers]},
        "status": {"phase": phase, "containerStatuses": list(containers), **status},
    }


def container(
    state: dict[str, Any], last: dict[str, Any] | None = None, restarts: int = 0, name: str = "worker"
) -> dict[str, Any]:
    return {"name": name, "state": state, "lastState": last or {}, "restartCount": restarts, "ready": False}


def running(since: str = BEFORE) -> dict[str, Any]:
    return {"running": {"startedAt": since}}


def terminated(
    code: int | None = 1, reason: str = "Error", since: str | None = BEFORE, until: str | None = AFTER
) -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "startedAt": since, "finishedAt": until}}


def stamp(at: datetime) -> str:
    """As a kubelet writes times: whole seconds."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def restarted_after(registered: datetime, code: int, reason: str, *, uid: str = UID, name: str = "") -> dict[str, Any]:
    """A pod whose container ended after a worker in it registered, and was started again."""
    ended = terminated(code, reason, stamp(registered - timedelta(seconds=3)), stamp(registered + timedelta(seconds=9)))
    return pod("Running", container(running(stamp(registered + timedelta(seconds=10))), ended, 1), uid=uid, name=name)

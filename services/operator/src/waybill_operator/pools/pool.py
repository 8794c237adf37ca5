"""A WorkerPool as it is stored in the cluster: its names, and what belongs to it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from waybill.cluster import Object
from waybill.cluster.resources import WORKER_POOLS

DEFAULT = "default"
"""The pool that the chart configures."""
FINALIZER = "waybill.dev/drain"
POOL_LABEL = "waybill.dev/pool"
OPERATOR_LABEL = "waybill.dev/operator"
"""Names the operator (its name prefix) that has taken a pool on, so that two in one namespace do not fight."""
MANAGER = "waybill-operator"
"""Our name among those that manage fields."""


@dataclass(frozen=True, slots=True)
class WorkerPool:
    body: Object

    @property
    def name(self) -> str:
        return str(self.body["metadata"]["name"])

    @property
    def namespace(self) -> str:
        return str(self.body["metadata"]["namespace"])

    @property
    def uid(self) -> str:
        return str(self.body["metadata"]["uid"])

    @property
    def version(self) -> str:
        return str(self.body["metadata"]["resourceVersion"])

    @property
    def generation(self) -> int:
        return int(self.body["metadata"].get("generation", 0))

    @property
    def labels(self) -> dict[str, str]:
        return self.body["metadata"].get("labels") or {}

    @property
    def finalizers(self) -> list[str]:
        return self.body["metadata"].get("finalizers") or []

    @property
    def deleted_at(self) -> datetime | None:
        stamp = self.body["metadata"].get("deletionTimestamp")
        return None if stamp is None else datetime.fromisoformat(stamp)

    @property
    def spec(self) -> object:
        return self.body.get("spec") or {}

    @property
    def status(self) -> dict[str, Any]:
        return self.body.get("status") or {}

    def is_of(self, prefix: str) -> bool:
        """Whether the operator with this prefix may take it on, or has."""
        return self.labels.get(OPERATOR_LABEL, prefix) == prefix

    @property
    def owner_reference(self) -> Object:
        """On all that belongs to it, so that Kubernetes removes that after it."""
        return {
            "apiVersion": WORKER_POOLS.api_version,
            "kind": WORKER_POOLS.kind,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def owns(self, other: Object) -> bool:
        return any(one.get("uid") == self.uid for one in other["metadata"].get("ownerReferences") or ())


def workload_name(prefix: str, pool: str) -> str:
    """What its Deployment, autoscaler and disruption budget are called."""
    return f"{prefix}-worker" if pool == DEFAULT else f"{prefix}-worker-{pool}"

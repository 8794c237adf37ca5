"""What a pool may change about its pods, and how that is merged into the template.

The list is closed: a field that is not here cannot be changed. Above all, no pool touches a security context, the
node's namespaces, the containers or their images, so whoever may write pools cannot loosen what the chart decided. A
pool may mount the namespace's Secrets and name its service accounts, as everybody may who can create pods there.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

Object = dict[str, Any]

VOLUME_SOURCES = (
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
)
"""Volumes that Kubernetes' restricted pod security allows. A folder of the node is none of them."""

OWN_LABELS = ("app.kubernetes.io/", "waybill.dev/", "helm.sh/")
"""Selectors depend on labels that begin like this."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
OWN_ANNOTATIONS = (DELETION_COST, DO_NOT_DISRUPT, SAFE_TO_EVICT)
"""Busy pods have them, idle ones do not."""


class PodOverrides(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)

    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)
    node_selector: dict[str, str] = Field(default_factory=dict)
    tolerations: list[Object] | None = None
    affinity: Object | None = None
    topology_spread_constraints: list[Object] | None = None
    priority_class_name: str | None = None
    scheduler_name: str | None = None
    runtime_class_name: str | None = None
    service_account_name: str | None = None
    termination_grace_period_seconds: int | None = Field(None, ge=1, le=86_400)
    image_pull_secrets: list[Object] | None = None
    dns_policy: str | None = None
    dns_config: Object | None = None
    host_aliases: list[Object] | None = None
    volumes: list[Object] = Field(default_factory=list, max_length=50)
    volume_mounts: list[Object] = Field(default_factory=list, max_length=50)
    """Of the container `worker`."""

    @field_validator("labels")
    @classmethod
    def _leaves_our_labels(cls, labels: dict[str, str]) -> dict[str, str]:
        for key in labels:
            if key.startswith(OWN_LABELS):
                raise ValueError(f"the label {key} is the operator's, which finds its pods by it")
        return labels

    @field_validator("annotations")
    @classmethod
    def _leaves_our_annotations(cls, annotations: dict[str, str]) -> dict[str, str]:
        for key in OWN_ANNOTATIONS:
            if key in annotations:
                raise ValueError(f"the annotation {key} is the operator's, which sets it while a pod is busy")
        return annotations

    @field_validator("volumes")
    @classmethod
    def _mounts_nothing_of_the_node(cls, volumes: list[Object]) -> list[Object]:
        for volume in volumes:
            if not isinstance(volume.get("name"), str):
                raise ValueError("a volume needs a name")
            for source in volume:
                if source != "name" and source not in VOLUME_SOURCES:
                    raise ValueError(
                        f"the volume {volume['name']} is a {source}, which is not allowed; allowed are"
                        f" {', '.join(VOLUME_SOURCES)}"
                    )
        return volumes

    @field_validator("volume_mounts")
    @classmethod
    def _says_where(cls, mounts: list[Object]) -> list[Object]:
        for mount in mounts:
            if not (isinstance(mount.get("name"), str) and isinstance(mount.get("mountPath"), str)):
                raise ValueError("a volume mount needs a name and a mountPath")
        return mounts


class OverridesClash(ValueError):
    """An override would replace something that the template needs."""


def merged(template: Object, overrides: PodOverrides, container: str) -> Object:
    """The template with the overrides. Maps are merged, volumes and mounts are added, all other lists replace.

    `OverridesClash` if a volume or a mount would hide one of the template.
    """
    result = copy.deepcopy(template)
    metadata = result.setdefault("metadata", {})
    pod: Object = result.setdefault("spec", {})
    _add(metadata, "labels", overrides.labels)
    _add(metadata, "annotations", overrides.annotations)
    _add(pod, "nodeSelector", overrides.node_selector)
    for name, value in overrides.model_dump(by_alias=True, exclude_none=True, include=_REPLACING).items():
        pod[name] = value
    _extend(pod, "volumes", overrides.volumes, "name")
    worker = next(one for one in pod["containers"] if one["name"] == container)
    _extend(worker, "volumeMounts", overrides.volume_mounts, "mountPath")
    return result


_REPLACING = {
    "tolerations",
    "affinity",
    "topology_spread_constraints",
    "priority_class_name",
    "scheduler_name",
    "runtime_class_name",
    "service_account_name",
    "termination_grace_period_seconds",
    "image_pull_secrets",
    "dns_policy",
    "dns_config",
    "host_aliases",
}


def _add(where: Object, name: str, values: Mapping[str, str]) -> None:
    if values:
        where[name] = {**(where.get(name) or {}), **values}


def _extend(where: Object, name: str, values: Sequence[Object], key: str) -> None:
    if not values:
        return
    known = where.get(name) or []
    taken = {one.get(key) for one in known}
    for value in values:
        if value[key] in taken:
            raise OverridesClash(f"spec.podOverrides.{name}: {value[key]} is taken by the template")
        taken.add(value[key])
    where[name] = [*known, *copy.deepcopy(list(values))]

"""Makes the objects of a pool be as they should, and never touches one that is not the pool's."""

from __future__ import annotations

import json
from collections.abc import Mapping

import structlog

from waybill.cluster import ClusterApi, Informer, NoSuchObject, Object, Resource
from waybill_operator.pools.pool import MANAGER, WorkerPool

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class NameTaken(Exception):
    """An object of that name is somebody else's."""


class OwnedObjects:
    """Knows what is there from informers, and what it last applied, so that nothing is written that changes nothing."""

    def __init__(self, api: ClusterApi, informers: Mapping[Resource, Informer]) -> None:
        self._api = api
        self._informers = informers
        self._applied: dict[tuple[str, str], tuple[str, str]] = {}
        """What was applied to an object, and how it was after that."""

    def find(self, resource: Resource, name: str) -> Object | None:
        """The object as it is in the cluster, as far as we know."""
        return self._informers[resource].objects.get(name)

    async def apply(self, pool: WorkerPool, resource: Resource, wanted: Object) -> bool:
        """Make the object so. True if that changed something; `NameTaken` if it is not the pool's."""
        name = wanted["metadata"]["name"]
        found = self.find(resource, name) or await self._look(resource, name, pool.namespace)
        if found is not None and not pool.owns(found):
            raise NameTaken(
                f"The {resource.kind} {name} exists and does not belong to this pool. It will be made when that one is"
                " gone."
            )
        key, asked = (resource.kind, name), _canonical(wanted)
        if found is not None and self._applied.get(key) == (asked, _state(found)):
            return False
        after = await self._api.apply(resource, wanted, manager=MANAGER)
        self._applied[key] = (asked, _state(after))
        return found is None or after["metadata"]["resourceVersion"] != found["metadata"]["resourceVersion"]

    async def remove(self, pool: WorkerPool, resource: Resource, name: str) -> bool:
        """Have the object gone, if it is the pool's. True if it was there."""
        self._applied.pop((resource.kind, name), None)
        found = self.find(resource, name)
        if found is None or not pool.owns(found):
            return False
        try:
            await self._api.delete(resource, name, pool.namespace, uid=found["metadata"]["uid"])
        except NoSuchObject:
            return False
        return True

    async def _look(self, resource: Resource, name: str, namespace: str) -> Object | None:
        """An object of this name that the informers do not show, because it lacks our label."""
        try:
            return await self._api.get(resource, name, namespace)
        except NoSuchObject:
            return None

    def forget(self, name: str) -> None:
        for key in [key for key in self._applied if key[1] == name]:
            del self._applied[key]


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)


def _state(found: Object) -> str:
    """What of an object is ours to say. Its status, and counters of others, are not."""
    metadata = found["metadata"]
    return _canonical([metadata["uid"], metadata.get("labels"), metadata.get("ownerReferences"), found.get("spec")])

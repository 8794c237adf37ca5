"""Makes one pool be as its spec says, as often as it is asked to. What it does follows from what it finds alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import structlog

from waybill.cluster import ClusterApi, Informer, Invalid, NoSuchObject, NotAllowed, Object
from waybill.cluster.resources import AUTOSCALERS, DEPLOYMENTS, DISRUPTION_BUDGETS, WORKER_POOLS
from waybill_operator.configuration import Configuration
from waybill_operator.controller.drain import Drain
from waybill_operator.controller.events import EventRecorder
from waybill_operator.controller.owned_objects import NameTaken, OwnedObjects
from waybill_operator.controller.pod_costs import PodCosts
from waybill_operator.controller.pool_adoption import adopt, is_adopted
from waybill_operator.pools import objects
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.overrides import OverridesClash
from waybill_operator.pools.pool import MANAGER, OPERATOR_LABEL, WorkerPool, workload_name
from waybill_operator.pools.spec import InvalidSpec, WorkerPoolSpec, parse
from waybill_operator.pools.status import PoolTrouble, status

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_FIGURES = ("queued", "running", "wanted", "oldest", "timeToDrainSeconds", "breakers")
_REFUSED_AGAIN = 120.0
"""Seconds after which what the API server refused is tried again: a quota or a policy may have changed."""


class PoolNumbers(Protocol):
    """Who knows the figures of pools."""

    @property
    def trouble(self) -> str | None:
        """Why they are not current."""

    def of(self, pool: str) -> PoolFigures | None: ...


@dataclass(frozen=True, slots=True)
class ReconcilerTools:
    """What reconciling needs. All of it is made by `controller`."""

    api: ClusterApi
    pools: Informer
    owned: OwnedObjects
    events: EventRecorder
    costs: PodCosts
    drain: Drain
    configuration: Callable[[], Configuration | None]
    figures: PoolNumbers


class Reconciler:
    def __init__(
        self,
        tools: ReconcilerTools,
        prefix: str,
        *,
        status_interval: float = 15.0,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._tools = tools
        self._prefix = prefix
        self._status_interval = status_interval
        self._clock = clock
        self._now = now
        self._written_at: dict[str, float] = {}

    async def reconcile(self, name: str) -> float | None:
        """Returns in how many seconds it wants to look again; None if not before something changes."""
        body = self._tools.pools.objects.get(name)
        if body is None:
            self._tools.owned.forget(workload_name(self._prefix, name))
            self._written_at.pop(name, None)
            return None
        pool = WorkerPool(body)
        if not pool.is_of(self._prefix):
            log.debug("pool_of_another", pool=name, operator=pool.labels[OPERATOR_LABEL])
            return None
        if pool.deleted_at is not None:
            return await self._drain(pool)
        if not is_adopted(pool, self._prefix):
            pool = WorkerPool(await adopt(self._tools.api, pool, self._prefix))
        try:
            trouble = await self._converge(pool)
        except NameTaken as error:
            # Usually what an earlier pool of this name has left, which is being removed.
            trouble = PoolTrouble("NameTaken", str(error))
        except Invalid as error:
            trouble = PoolTrouble("Refused", error.message, final=True)
        except NotAllowed as error:
            trouble = PoolTrouble("Forbidden", error.message)
        if trouble is not None:
            self._tools.events.say(pool, "Warning", trouble.reason, "Reconcile", trouble.message)
        again = await self._write_status(pool, trouble)
        if trouble is not None and trouble.reason != "InvalidSpec":
            return min(again or _REFUSED_AGAIN, _REFUSED_AGAIN if trouble.final else 5.0)
        return again

    async def _drain(self, pool: WorkerPool) -> float | None:
        again = await self._tools.drain.step(pool)
        if again is not None:
            await self._write_status(pool, None)
        return again

    async def _converge(self, pool: WorkerPool) -> PoolTrouble | None:
        configuration = self._tools.configuration()
        if configuration is None:
            return PoolTrouble("NoTemplate", "The operator has no template of worker pods. See its log.")
        try:
            spec = parse(pool.spec)
            wanted = objects.deployment(pool, spec, configuration.template, self._prefix, replicas=spec.replicas)
        except (InvalidSpec, OverridesClash) as error:
            return PoolTrouble("InvalidSpec", str(error), final=True)
        await self._apply_deployment(pool, wanted)
        await self._apply_others(pool, spec, configuration.template)
        return None

    async def _apply_deployment(self, pool: WorkerPool, wanted: Object) -> None:
        before = self._tools.owned.find(DEPLOYMENTS, wanted["metadata"]["name"])
        had, gets = None if before is None else before["spec"].get("replicas", 1), wanted["spec"]["replicas"]
        if before is not None and had > gets and pool.owns(before):
            await self._tools.costs.mark_exactly(pool.name)
        changed = await self._tools.owned.apply(pool, DEPLOYMENTS, wanted)
        if before is None:
            note = f"Created the Deployment {wanted['metadata']['name']} with {gets} workers."
            self._tools.events.say(pool, "Normal", "Created", "Create", note)
        elif changed and had != gets:
            self._tools.events.say(pool, "Normal", "Scaled", "Scale", f"Scaled from {had} to {gets} workers.")

    async def _apply_others(self, pool: WorkerPool, spec: WorkerPoolSpec, template: Object) -> None:
        name = workload_name(self._prefix, pool.name)
        for resource, wanted in (
            (AUTOSCALERS, objects.autoscaler(pool, spec, template, self._prefix)),
            (DISRUPTION_BUDGETS, objects.disruption_budget(pool, spec, template, self._prefix)),
        ):
            if wanted is not None:
                await self._tools.owned.apply(pool, resource, wanted)
            elif await self._tools.owned.remove(pool, resource, name):
                note = f"Removed the {resource.kind} {name}, which the pool no longer asks for."
                self._tools.events.say(pool, "Normal", "Removed", "Remove", note)

    async def _write_status(self, pool: WorkerPool, trouble: PoolTrouble | None) -> float | None:
        """Write the status if it says something new.

        Returns in how many seconds its figures may change next, if they wait for that.
        """
        deployment = self._tools.owned.find(DEPLOYMENTS, workload_name(self._prefix, pool.name))
        if deployment is not None and not pool.owns(deployment):
            deployment = None
        wanted = status(
            pool,
            selector=self._selector(pool, deployment),
            deployment=deployment,
            trouble=trouble,
            figures=self._tools.figures.of(pool.name),
            figures_trouble=self._tools.figures.trouble,
            now=self._now(),
        )
        if wanted == pool.status:
            return None
        waited = self._clock() - self._written_at.get(pool.name, float("-inf"))
        if _without_figures(wanted) == _without_figures(pool.status) and waited < self._status_interval:
            return self._status_interval - waited
        self._written_at[pool.name] = self._clock()
        body = {"metadata": {"name": pool.name, "namespace": pool.namespace, "uid": pool.uid}, "status": wanted}
        try:
            await self._tools.api.apply(WORKER_POOLS, body, manager=MANAGER, subresource="status")
        except NoSuchObject:
            return None
        return None

    def _selector(self, pool: WorkerPool, deployment: Object | None) -> str:
        if deployment is not None:
            labels = deployment["spec"]["selector"]["matchLabels"]
            return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))
        configuration = self._tools.configuration()
        if configuration is None:
            return str(pool.status.get("selector") or "")
        return objects.selector_text(configuration.template, pool.name)


def _without_figures(found: Object) -> Object:
    return {name: value for name, value in found.items() if name not in _FIGURES}

"""`python -m waybill_operator uninstall`: no pool, and no finalizer of ours, is left behind.

The chart runs it before it removes anything else. It takes the operator's place: it scales the operator's Deployment to
zero and waits for the Lease, which a stopped operator lets go at once and a dead one within seconds. Then it drains
the pools as the operator would. So it works the same with an operator and without, and nobody makes the pool `default`
again while it is being removed. If it fails, the operator gets its replicas back.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import Never

import structlog

from waybill.cluster import ClusterApi, ClusterError, Informer, NoSuchObject, NotReachable, cluster_api, own_pod_name
from waybill.cluster.resources import DEPLOYMENTS, WORKER_POOLS
from waybill_operator.configuration import ConfigurationFolder
from waybill_operator.controller.controller import Controller
from waybill_operator.leadership import Leadership
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.pool import WorkerPool
from waybill_operator.program import FAILED, MISCONFIGURED, OK, own_deployment, required_namespace, start
from waybill_operator.settings import OperatorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()

_LOOK_EVERY = 1.0


def run() -> Never:
    settings = start()
    try:
        code = asyncio.run(_until_signal(settings))
    except NotReachable as error:
        log.error("cannot_start", reason=error.message)
        code = MISCONFIGURED
    sys.exit(code)


async def _until_signal(settings: OperatorSettings) -> int:
    working = asyncio.create_task(_uninstall(settings))
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, working.cancel)
    try:
        await working
    except asyncio.CancelledError:
        log.warning("uninstall_interrupted")
        return FAILED
    except ClusterError as error:
        if isinstance(error, NotReachable):
            raise
        log.error("uninstall_failed", error=error.message)
        return FAILED
    return OK


async def _uninstall(settings: OperatorSettings) -> None:
    namespace, prefix = required_namespace(), settings.operator_name_prefix
    async with cluster_api("waybill-operator") as api:
        if not await _is_installed(api, namespace):
            log.info("nothing_to_uninstall")
            return
        had = await _stop_operator(api, namespace, prefix)
        try:
            await _remove_pools(settings, api, namespace, prefix)
        except BaseException:
            await _start_operator(api, namespace, prefix, had)
            raise
    log.info("uninstalled")


async def _is_installed(api: ClusterApi, namespace: str) -> bool:
    """Whether there can be pools at all."""
    try:
        await api.list(WORKER_POOLS, namespace)
    except NoSuchObject:
        return False
    return True


async def _stop_operator(api: ClusterApi, namespace: str, prefix: str) -> int | None:
    """Scale the operator to zero. Returns how many replicas it had; None if there is no Deployment."""
    name = f"{prefix}-operator"
    try:
        found = await api.get(DEPLOYMENTS, name, namespace)
        await api.patch(DEPLOYMENTS, name, namespace, {"spec": {"replicas": 0}})
    except NoSuchObject:
        return None
    return int(found["spec"].get("replicas", 1))


async def _start_operator(api: ClusterApi, namespace: str, prefix: str, replicas: int | None) -> None:
    if replicas:
        with contextlib.suppress(ClusterError):
            await api.patch(DEPLOYMENTS, f"{prefix}-operator", namespace, {"spec": {"replicas": replicas}})


async def _remove_pools(settings: OperatorSettings, api: ClusterApi, namespace: str, prefix: str) -> None:
    pools = Informer(api, WORKER_POOLS, namespace)
    folder = ConfigurationFolder(settings.operator_config_dir)
    folder.look()
    leadership = Leadership(
        api,
        namespace,
        f"{prefix}-operator",
        own_pod_name(),
        owner=await own_deployment(api, namespace, prefix),
    )

    async def lead() -> Never:
        controller = Controller(
            api.guarded(lambda: leadership.held),
            pools,
            folder,
            _NoFigures(),
            None,
            namespace=namespace,
            prefix=prefix,
            instance="uninstall",
            with_default_pool=False,
        )
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(controller.run())
            tasks.create_task(_delete_all(api, pools, prefix))
        raise AssertionError("the controller never ends")

    watching: asyncio.Task[None] = asyncio.create_task(pools.run())
    leading: asyncio.Task[None] = asyncio.create_task(leadership.run(lead))
    gone = asyncio.create_task(_wait_until_gone(pools, prefix))
    try:
        await asyncio.wait([watching, leading, gone], return_when=asyncio.FIRST_COMPLETED)
        for task in (watching, leading):
            if task.done():
                task.result()
    finally:
        for task in (gone, leading, watching):
            task.cancel()
        await asyncio.gather(gone, leading, watching, return_exceptions=True)


async def _delete_all(api: ClusterApi, pools: Informer, prefix: str) -> Never:
    """Delete every pool of ours, those as well that somebody makes meanwhile."""
    await pools.wait_until_listed()
    while True:
        for pool in _of(pools, prefix):
            if pool.deleted_at is None:
                log.info("deleting_pool", pool=pool.name)
                try:
                    await api.delete(WORKER_POOLS, pool.name, pool.namespace, uid=pool.uid)
                except NoSuchObject:
                    continue
                except ClusterError as error:
                    log.warning("pool_not_deleted", pool=pool.name, error=error.message)
        await asyncio.sleep(_LOOK_EVERY)


async def _wait_until_gone(pools: Informer, prefix: str) -> None:
    await pools.wait_until_listed()
    changed = asyncio.Event()
    pools.on_change(lambda _before, _after: changed.set())
    while left := _of(pools, prefix):
        log.info("waiting_for_pools", pools=[pool.name for pool in left])
        changed.clear()
        await changed.wait()


def _of(pools: Informer, prefix: str) -> list[WorkerPool]:
    return [pool for pool in map(WorkerPool, pools.objects.values()) if pool.is_of(prefix)]


class _NoFigures:
    """Nobody counts jobs any more."""

    trouble: str | None = None

    def of(self, _pool: str) -> PoolFigures | None:
        return None

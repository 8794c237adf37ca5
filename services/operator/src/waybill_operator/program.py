"""`python -m waybill_operator`: every replica serves the metrics API, and the one that holds the Lease keeps the pools.

Nothing waits for anything else: discovery is answered before the database or the API server is, and each part finds its
way back by itself when what it needs comes back.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
from collections.abc import AsyncIterator
from typing import Never

import structlog

from waybill import background_tasks
from waybill import log as logging_setup
from waybill.cluster import (
    ClusterApi,
    ClusterError,
    Informer,
    NotReachable,
    Object,
    cluster_api,
    own_namespace,
    own_pod_name,
)
from waybill.cluster.resources import DEPLOYMENTS, WORKER_POOLS
from waybill.collector import spare_the_living
from waybill.config import load
from waybill.db import Database
from waybill.db.schema import check_schema
from waybill.http.accept_errors import AcceptErrors
from waybill.readiness import notify_ready
from waybill.telemetry import metrics, metrics_server, traces
from waybill.telemetry.loop_watch import LoopWatch
from waybill.telemetry.process_group import probe
from waybill.telemetry.small_server import listen
from waybill_operator.configuration import ConfigurationFolder
from waybill_operator.controller.controller import Controller
from waybill_operator.figures import FleetFigures
from waybill_operator.leadership import Leadership
from waybill_operator.metrics_api.application import MetricsApplication
from waybill_operator.metrics_api.certificate import ServingCertificate
from waybill_operator.metrics_api.proxy_trust import TrustSource
from waybill_operator.metrics_api.server import MetricsServer
from waybill_operator.probes import OperatorProbes
from waybill_operator.settings import OperatorSettings

log: structlog.stdlib.BoundLogger = structlog.get_logger()

OK, FAILED, MISCONFIGURED = 0, 1, 2
_PATIENCE = 10.0
"""Seconds after which a connection to the database that does not answer is given up."""
_HOT_CONNECTIONS = 3


def start() -> OperatorSettings:
    """What every command of this program does first."""
    settings = load(OperatorSettings)
    logging_setup.configure(settings, service="operator")
    logging_setup.log_crashes()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # we log what matters ourselves
    return settings


def run() -> Never:
    settings = start()
    traces.start(settings, "operator")
    code = FAILED
    try:
        code = asyncio.run(_run(settings))
    except NotReachable as error:
        log.error("cannot_start", reason=error.message)
        code = MISCONFIGURED
    finally:
        traces.stop()
    sys.exit(code)


def required_namespace() -> str:
    """The namespace whose pools we keep. Without one, the process ends."""
    found = own_namespace()
    if found is None:
        log.error("cannot_start", reason="the operator does not know its namespace", setting="POD_NAMESPACE")
        sys.exit(MISCONFIGURED)
    return found


async def _run(settings: OperatorSettings) -> int:
    AcceptErrors().install(asyncio.get_running_loop())
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    watch = LoopWatch()
    probes = OperatorProbes(watch)
    routes = {"/livez": probe(probes.alive), "/readyz": probe(probes.ready)}
    with metrics_server.serving(settings, "operator", settings.operator_metrics_port, routes):
        async with watch.watching(), cluster_api("waybill-operator") as api, _database(settings) as database:
            operator = Operator(settings, api, database, probes)
            spare_the_living()
            working = asyncio.create_task(operator.run())
            stopping = asyncio.create_task(stop.wait())
            await asyncio.wait([working, stopping], return_when=asyncio.FIRST_COMPLETED)
            failed = working.done()
            for task in (working, stopping):
                task.cancel()
            outcome = await asyncio.gather(working, return_exceptions=True)
            if failed:
                return _failed(_first(outcome[0]))
    log.info("stopped")
    return OK


def _failed(error: BaseException | None) -> int:
    if isinstance(error, PortTaken):
        log.error("cannot_start", reason=str(error))
        return MISCONFIGURED
    log.error("operator_failed", exc_info=error)
    return FAILED


class PortTaken(Exception):
    """A sentence for whoever configured it."""


class Operator:
    """One replica."""

    def __init__(self, settings: OperatorSettings, api: ClusterApi, database: Database, probes: OperatorProbes) -> None:
        self._settings = settings
        self._api = api
        self._database = database
        self._probes = probes
        self._namespace = required_namespace()
        self._prefix = settings.operator_name_prefix
        self._folder = ConfigurationFolder(settings.operator_config_dir)
        self._pools = Informer(api, WORKER_POOLS, self._namespace)
        self._figures = FleetFigures(
            database,
            self._pools,
            self._prefix,
            interval=settings.operator_figures_interval,
            ready=self._check_schema,
        )

    async def run(self) -> Never:
        self._folder.look()
        async with self._metrics_api() as served, asyncio.TaskGroup() as tasks:
            self._probes.parts = {
                "metrics api": lambda: None if served is None else served.trouble,
                "configuration": lambda: self._folder.trouble if self._folder.current is None else None,
                "worker pools": self._pools_trouble,
            }
            for work in (self._folder.run(), self._pools.run(), self._figures.run(), self._lead(), self._announce()):
                tasks.create_task(work)
        raise AssertionError("the operator's tasks never end")

    @contextlib.asynccontextmanager
    async def _metrics_api(self) -> AsyncIterator[MetricsServer | None]:
        settings = self._settings
        if not settings.operator_metrics_api_port:
            yield None
            return
        trust = TrustSource(self._api)
        application = MetricsApplication(
            self._figures, self._pools, trust, namespace=self._namespace, prefix=self._prefix
        )
        server = MetricsServer(
            application.asgi(access_log=settings.access_log),
            ServingCertificate(settings.operator_tls_dir),
            trust,
            _listener(settings.operator_metrics_api_host, settings.operator_metrics_api_port),
        )
        async with server.serving(), background_tasks.running(trust.run(), "front proxy"):
            yield server

    async def _lead(self) -> Never:
        leadership = Leadership(
            self._api,
            self._namespace,
            f"{self._prefix}-operator",
            own_pod_name(),
            owner=await own_deployment(self._api, self._namespace, self._prefix),
        )
        guarded = self._api.guarded(lambda: leadership.held)

        async def lead() -> Never:
            controller = Controller(
                guarded,
                self._pools,
                self._folder,
                self._figures,
                self._database,
                namespace=self._namespace,
                prefix=self._prefix,
                instance=own_pod_name(),
                status_interval=self._settings.operator_status_interval,
            )
            self._figures.on_change(controller.figures_changed)
            try:
                await controller.run()
            finally:
                self._figures.off_change(controller.figures_changed)

        await leadership.run(lead)

    async def _announce(self) -> None:
        """Tell a supervising parent once we are ready."""
        await self._pools.wait_until_listed()
        notify_ready()

    async def _check_schema(self) -> None:
        async with self._database.hot() as connection:
            await check_schema(connection)

    def _pools_trouble(self) -> str | None:
        if self._pools.listed:
            return None
        return "they have not been listed" if self._pools.trouble is None else self._pools.trouble.message


async def own_deployment(api: ClusterApi, namespace: str, prefix: str) -> Object | None:
    """A reference to the operator's own Deployment, with which its Lease disappears; None if there is none."""
    try:
        found = await api.get(DEPLOYMENTS, f"{prefix}-operator", namespace)
    except ClusterError:
        return None  # the Lease stays behind, which harms nobody
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "name": found["metadata"]["name"],
        "uid": found["metadata"]["uid"],
    }


@contextlib.asynccontextmanager
async def _database(settings: OperatorSettings) -> AsyncIterator[Database]:
    """The database, whether or not it answers yet."""
    database = Database(
        settings.database_url,
        hot_size=_HOT_CONNECTIONS,
        pgbouncer=settings.database_pgbouncer,
        name="waybill operator",
        patience=_PATIENCE,
    )
    metrics.POOL_CONNECTIONS.ask(database.pool_use)
    try:
        yield database
    finally:
        await database.close()


def _listener(host: str, port: int) -> socket.socket:
    try:
        return listen(host, port)
    except OSError as error:
        raise PortTaken(
            f"the metrics API cannot be served at {host}:{port}: {error.strerror}."
            " Choose another port with WAYBILL_OPERATOR_METRICS_API_PORT, or none with 0."
        ) from error


def _first(error: object) -> BaseException | None:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, BaseException) else None

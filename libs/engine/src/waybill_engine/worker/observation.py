"""A worker's numbers and probes, at `WAYBILL_WORKER_METRICS_PORT`.

The process that was started first has the port: a supervisor, or the only process. It answers for all processes of the
worker, which are its children and those that run suspects of a crash (`waybill.telemetry.process_group`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import structlog

from waybill.telemetry import handover, metrics_server
from waybill.telemetry.loop_watch import LoopWatch
from waybill.telemetry.process_group import ProcessGroup, member, probe, probe_answer
from waybill.telemetry.small_server import Headers, SmallAnswer
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.probes import Probes

log: structlog.stdlib.BoundLogger = structlog.get_logger()

SUPERVISOR = "supervisor"
_FIRST = "1"
_ISOLATED = "-isolated"


class Observation:
    """What a process needs in order to be observed, and what it tells its children."""

    def __init__(self, settings: WorkerSettings, process: str) -> None:
        self.watch = LoopWatch()
        self.probes = Probes(self.watch, settings.lease_ttl)
        self.process = process
        self.folder: Path | None = None

    def arguments_for(self, child: str) -> list[str]:
        """How a child learns its name and where to answer; nothing if nobody asks."""
        return [] if self.folder is None else ["--observed-at", str(self.folder), "--process", child]

    def arguments_for_isolated(self) -> list[str]:
        """The same for the process that runs suspects of a crash."""
        return self.arguments_for(f"{self.process}{_ISOLATED}")

    def isolated_ended(self) -> None:
        """Go on with the numbers of that process, which has ended."""
        if self.folder is not None:
            handover.take_over(_left_by(self.folder, f"{self.process}{_ISOLATED}"))


@contextmanager
def first_process(settings: WorkerSettings, *, supervises: bool) -> Iterator[Observation]:
    """Be observed as the process that has the port."""
    observation = Observation(settings, SUPERVISOR if supervises else _FIRST)
    port = settings.worker_metrics_port
    with ExitStack() as stack:
        if port:
            observation.folder = _folder(stack)
        service = SUPERVISOR if supervises else "worker"
        page = _Page(service, observation, supervises=supervises)
        routes = {"/metrics": page.metrics, "/livez": page.alive, "/readyz": page.ready}
        stack.enter_context(metrics_server.serving(settings, "worker", port, routes))
        yield observation


@contextmanager
def further_process(settings: WorkerSettings, folder: Path | None, process: str) -> Iterator[Observation]:
    """Be observed as a child of such a process."""
    observation = Observation(settings, process)
    observation.folder = folder
    with metrics_server.serving(settings, "worker", 0):
        if folder is None:
            yield observation
            return
        probes = {"/livez": observation.probes.alive, "/readyz": observation.probes.ready}
        try:
            server = member(folder, process, "worker", probes)
        except OSError as error:
            log.error("metrics_not_served", process=process, error=error.strerror)
            yield observation
            return
        server.start()
        try:
            yield observation
        finally:
            server.stop()
            if process.endswith(_ISOLATED):
                handover.leave(_left_by(folder, process))


def _left_by(folder: Path, process: str) -> Path:
    return folder / f"{process}.left"


class _Page:
    """What the process with the port answers."""

    def __init__(self, service: str, observation: Observation, *, supervises: bool) -> None:
        self._service = service
        self._observation = observation
        self._supervises = supervises
        self._own = {"/livez": observation.probes.alive, "/readyz": observation.probes.ready}

    async def metrics(self, headers: Headers) -> SmallAnswer:
        from waybill.telemetry import exposition

        others = await self._others().families()
        own = (self._observation.process, exposition.own_families(self._service))
        return metrics_server.page(exposition.together([own, *others]), headers)

    async def alive(self, headers: Headers) -> SmallAnswer:
        if not self._supervises:
            return await probe(self._own["/livez"])(headers)
        troubles = await self._others().troubles("/livez")
        found = [f"process {name}: {trouble}" for name, trouble in troubles.items() if trouble]
        return probe_answer("; ".join(found) or None)

    async def ready(self, headers: Headers) -> SmallAnswer:
        """A worker with several processes is ready when one of them is."""
        if not self._supervises:
            return await probe(self._own["/readyz"])(headers)
        troubles = await self._others().troubles("/readyz")
        if any(trouble is None for trouble in troubles.values()):
            return probe_answer(None)
        found = [f"process {name}: {trouble}" for name, trouble in troubles.items()]
        return probe_answer("; ".join(found) or "it is starting")

    def _others(self) -> ProcessGroup:
        return ProcessGroup(self._observation.folder or Path("/nonexistent"))


def _folder(stack: ExitStack) -> Path | None:
    try:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="waybill-", ignore_cleanup_errors=True)))
    except OSError as error:
        log.error("metrics_of_children_not_served", error=error.strerror, hint="set TMPDIR to a folder for sockets")
        return None

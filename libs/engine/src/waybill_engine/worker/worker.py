"""One worker process, put together from its parts: it starts, runs until told to stop, and stops without a loss."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import structlog

from waybill.db import Database
from waybill.storage import Storage
from waybill_engine import breaker, counts_of_jobs
from waybill_engine.announcements import Announced
from waybill_engine.claim import ClaimedJob
from waybill_engine.fair_share import FairShare
from waybill_engine.models import State
from waybill_engine.registry import Handler
from waybill_engine.rescue import rescue_worker
from waybill_engine.sampler import Sampler
from waybill_engine.schedules import Schedule
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker.announcer import Announcer
from waybill_engine.worker.claimer import Claimer
from waybill_engine.worker.clients import Clients
from waybill_engine.worker.database_health import DatabaseHealth
from waybill_engine.worker.dependencies import Dependencies
from waybill_engine.worker.heartbeat import Heartbeat
from waybill_engine.worker.isolation import Isolation
from waybill_engine.worker.lane_finder import LaneFinder
from waybill_engine.worker.listener import Listener
from waybill_engine.worker.maintenance import Promoter, Rescuer
from waybill_engine.worker.observation import Observation
from waybill_engine.worker.process_pool import BlockingPool
from waybill_engine.worker.registration import Registration
from waybill_engine.worker.scheduler import Scheduler
from waybill_engine.worker.shutdown import Shutdown
from waybill_engine.worker.slots import Slots
from waybill_engine.worker.throughput_counter import ThroughputCounter
from waybill_engine.worker.timers import Polls
from waybill_engine.worker.turns import Turns

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class JobRunner:
    def __init__(
        self,
        settings: WorkerSettings,
        db: Database,
        storage: Storage,
        handlers: Mapping[str, Handler],
        schedules: Sequence[Schedule] = (),
        *,
        program: str = "waybill_engine.worker",
        worker_id: uuid.UUID | None = None,
        isolating: bool = False,
        observation: Observation | None = None,
    ) -> None:
        self._db = db
        self._health = health = DatabaseHealth()
        self._registration = Registration(settings, db, health, handlers, worker_id=worker_id, isolating=isolating)
        self.registered = False
        info = self._registration.info
        queues, kinds = info.queues, info.kinds
        pool = BlockingPool(settings.worker_pool_size)
        policy = breaker.BreakerPolicy.of(settings)
        self._clients = Clients()
        self._dependencies = Dependencies(db, health, policy)
        self._slots = slots = Slots(
            info.id,
            db,
            health,
            storage,
            self._clients,
            pool,
            handlers,
            info.concurrency,
            self._dependencies,
        )
        self._fair_share = FairShare(self._registration.dependencies, ageing=settings.priority_ageing)
        self._lane_finder = LaneFinder(
            db,
            health,
            self._fair_share,
            queues=queues,
            kinds=kinds,
            isolated=isolating,
            on_found=lambda: self._claimer.wake(),
            on_fleet=lambda fleet: self._turns.apply(fleet),
        )
        self._claimer = Claimer(
            db,
            health,
            slots,
            self._fair_share,
            policy,
            poll_interval=settings.poll_interval,
            suspects=self._lane_finder if isolating else None,
            on_forgotten=self._start_over,
        )
        self._turns = Turns(db, health, slots, self._fair_share, self._claimer.wake)
        slots.on_room = self._claimer.wake
        slots.on_written = self._claimer.runs_ended
        self._throughput = ThroughputCounter(db, settings.heartbeat_interval)
        slots.on_finished = self._jobs_finished
        self._heartbeat = Heartbeat(
            db,
            health,
            slots,
            ttl=settings.lease_ttl,
            interval=settings.heartbeat_interval,
            on_gone=self._start_over,
        )
        self._isolation = Isolation(
            program,
            db,
            health,
            lambda worker_id: replace(self._registration.info, id=worker_id, concurrency=1, isolating=True),
            settings.lease_ttl,
            observation,
        )
        self._shutdown = Shutdown(
            settings.shutdown_grace,
            slots,
            self._claimer,
            self._isolation,
            self._registration,
            [
                slots.completer.drained,
                self._dependencies.flush,
                self._throughput.report,
                # A claim whose answer was lost may have left jobs with us.
                partial(self._heartbeat.beat, claiming=False),
            ],
        )
        self._promoter = Promoter(
            db,
            health,
            rank=self._turns.rank,
            on_promoted=lambda lanes: self._turns.take(lanes, lambda lane: lane.queue in queues and lane.kind in kinds),
        )
        self._scheduler = Scheduler(db, health, schedules)
        self._rescuer = Rescuer(
            db,
            health,
            self._isolation,
            lambda: self._heartbeat.well_for,
            queues=queues,
            kinds=kinds,
            heartbeat_interval=settings.heartbeat_interval,
        )
        self._announcer = Announcer(db, health)
        self._polls = Polls()
        self._polls.every(settings.poll_interval, self._lane_finder.poll)
        self._polls.every(settings.poll_interval, self._ask_what_is_due)
        self._polls.every(settings.rescue_interval, self._rescuer.poll)
        self._polls.every(settings.sample_interval, Sampler(db, settings.sample_interval).poll)
        self._listener = Listener(
            db,
            health,
            queues=queues,
            kinds=kinds,
            worker_id=lambda: slots.worker_id,
            on_lane=self._heard_of_lane,
            on_look=self._claimer.wake if isolating else self._lane_finder.request,  # isolating, the claimer looks
            on_scheduled=self._promoter.due_in,
            on_promoted=self._promoter.promoted_elsewhere,
            on_schedules=self._scheduler.due_in,
            on_control=self._heartbeat.wake,
            on_relay=self._announcer.request,
        )

    @property
    def id(self) -> uuid.UUID:
        return self._slots.worker_id

    # How it stands, for probes. Another thread asks.

    @property
    def draining(self) -> bool:
        return self._shutdown.begun.is_set()

    @property
    def busy(self) -> bool:
        return len(self._slots.runs) + len(self._slots.completer) > 0

    @property
    def database_is_well(self) -> bool:
        return not self._health.down

    @property
    def renewal_tried_at(self) -> float:
        return self._heartbeat.tried_at

    def stop(self) -> None:
        """Begin to shut down. The second call stops waiting for running jobs."""
        self._shutdown.begin()

    async def replace_dead(self, worker_id: uuid.UUID) -> None:
        """Return the jobs of a predecessor that is known to be dead, without waiting for its lease to end."""
        async with self._db.hot() as connection:
            for one in await rescue_worker(connection, worker_id):
                log.warning("rescued", job_id=str(one.id), verdict=one.event, worker=one.worker)

    async def run(self, *, on_ready: Callable[[], None] = lambda: None) -> None:
        """Work until `stop` is called or, when isolating, until no suspect is left."""
        await self._register()
        self.registered = True
        info = self._registration.info
        log.info(
            "worker_started",
            worker=info.name,
            kinds=info.kinds,
            queues=info.queues,
            concurrency=info.concurrency,
            isolating=info.isolating,
        )
        on_ready()
        claiming = [asyncio.create_task(self._claimer.run(), name="claimer")]
        supporting = [
            asyncio.create_task(self._heartbeat.run(), name="heartbeat"),
            asyncio.create_task(self._heartbeat.guard(), name="lease guard"),
            asyncio.create_task(self._slots.completer.run(), name="completer"),
            asyncio.create_task(self._slots.completer.write_the_locked(), name="locked completions"),
            asyncio.create_task(self._slots.progress.run(), name="progress"),
            asyncio.create_task(self._dependencies.run(), name="dependencies"),
            asyncio.create_task(self._throughput.run(), name="throughput"),
            asyncio.create_task(self._slots.release_the_waiting(), name="patience"),
        ]
        if not self._db.pgbouncer:
            supporting.append(asyncio.create_task(self._listener.run(), name="listener"))
        if not info.isolating:
            claiming.append(asyncio.create_task(self._polls.run(), name="polls"))
            claiming.append(asyncio.create_task(self._lane_finder.run(), name="lane finder"))
            claiming.append(asyncio.create_task(self._promoter.run(), name="promoter"))
            claiming.append(asyncio.create_task(self._scheduler.run(), name="scheduler"))
            claiming.append(asyncio.create_task(self._rescuer.run(), name="rescuer"))
            claiming.append(asyncio.create_task(self._announcer.run(), name="announcer"))
            claiming.append(asyncio.create_task(self._turns.run(), name="turns"))
        stopping = asyncio.create_task(self._shutdown.begun.wait(), name="stopping")
        try:
            # All of them run for ever. One that ends has failed, or no suspect is left.
            done, _ = await asyncio.wait([*claiming, *supporting, stopping], return_when=asyncio.FIRST_COMPLETED)
            await self._shutdown.run(claiming)
            for task in done:
                task.result()
        finally:
            for task in (*claiming, *supporting, stopping):
                task.cancel()
            await asyncio.gather(*claiming, *supporting, stopping, return_exceptions=True)
            await self._clients.close()

    async def _register(self) -> None:
        await self._registration.write(on_lease=self._heartbeat.registered)

    def _jobs_finished(self, jobs: Sequence[ClaimedJob], state: State) -> None:
        self._throughput.add(jobs, state)
        counts_of_jobs.finished(jobs, state, asyncio.get_running_loop().time())

    async def _start_over(self) -> None:
        """Go on under a new id and without any jobs, because the database no longer knows what this worker runs."""
        self._slots.drop_everything()
        await self._registration.stop()  # if it still knows the old id, whatever is left there is released
        self._registration.take_new_id()
        await self._register()
        self._slots.worker_id = self._registration.id
        log.info("worker_started_over", worker=self._registration.info.name)
        self._lane_finder.request()

    def _heard_of_lane(self, announced: Announced) -> None:
        if self._registration.info.isolating:
            return  # nobody announces suspects
        self._turns.heard(announced)

    async def _ask_what_is_due(self) -> None:
        self._scheduler.due_in((await self._promoter.poll()).tick)

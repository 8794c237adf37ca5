"""Keeps the services of `waybill up` running until somebody stops it.

A service that dies is restarted after a pause (`pauses`). A service that exits with 2 rejects its configuration; a
restart cannot help, so everything stops. The same holds for one that could not take its port when it was first started:
whoever answers there is not ours, and must not be taken for it.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from waybill_cli.local.addresses import Address, PortError
from waybill_cli.local.pauses import Pauses
from waybill_cli.local.screen import Screen
from waybill_cli.local.service import ReadyListener, Service, ServiceProcess

PORT_TAKEN = 1
BAD_CONFIGURATION = 2

Keeper = Callable[[asyncio.Event], Awaitable[None]]
"""Keeps something running beside the services until the event is set."""


class ServiceGroup:
    """Runs `services` with `environment`. They have `grace` seconds to stop before they are killed.

    `addresses` says where each of them listens, if it does.
    """

    def __init__(
        self,
        services: Sequence[Service],
        environment: Mapping[str, str],
        addresses: Mapping[str, Address],
        screen: Screen,
        *,
        grace: float,
    ) -> None:
        self._services = services
        self._environment = environment
        self._addresses = addresses
        self._screen = screen
        self._grace = grace
        self._stop = asyncio.Event()
        self._hurry = asyncio.Event()
        self._processes: dict[str, ServiceProcess] = {}
        self._ready: set[str] = set()
        self._exit_code = 0

    async def run(
        self, *, prepare: Callable[[], Awaitable[None]], on_ready: Callable[[], None], beside: Sequence[Keeper] = ()
    ) -> int:
        """Prepare, then run everything until a signal, and return the exit code.

        What is kept running `beside` the services is kept while we prepare, too. A signal is heard at any time.
        `on_ready` is called once, when all services are ready.
        """
        loop = asyncio.get_running_loop()
        signals = stop_signals()
        for each in signals:
            loop.add_signal_handler(each, self._signalled, each)
        with tempfile.TemporaryDirectory(prefix="waybill-", ignore_cleanup_errors=True) as sockets:
            keepers = [self._task(keep(self._stop)) for keep in beside]
            try:
                if await self._prepared(prepare):
                    keepers += [self._task(self._keep(each, Path(sockets), on_ready)) for each in self._services]
                await self._stop.wait()
            finally:
                self._stop.set()
                await self._stop_all(keepers)
                for each in signals:
                    loop.remove_signal_handler(each)
        return self._exit_code

    def _task(self, keeper: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(keeper)
        task.add_done_callback(lambda _: self._stop.set())  # if it ends early, something is broken
        return task

    async def _prepared(self, prepare: Callable[[], Awaitable[None]]) -> bool:
        """False if we are to stop instead."""
        preparing = asyncio.ensure_future(prepare())
        stopping = asyncio.ensure_future(self._stop.wait())
        try:
            either: list[asyncio.Future[Any]] = [preparing, stopping]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if not preparing.done():
                return False
            preparing.result()  # raises what went wrong
            return not self._stop.is_set()
        finally:
            for each in (preparing, stopping):
                each.cancel()
            await asyncio.wait([preparing, stopping])

    def _signalled(self, received: signal.Signals) -> None:
        if self._stop.is_set():
            self._screen.say("Killing what still runs.")
            self._hurry.set()
        else:
            self._screen.say(f"Stopping ({received.name}). Press Ctrl-C again to kill what still runs.")
            self._stop.set()

    async def _keep(self, service: Service, sockets: Path, on_ready: Callable[[], None]) -> None:
        """Start the service, and restart it whenever it ends by itself."""
        address = sockets / service.name
        listener = await ReadyListener.listen(address, lambda: self._is_ready(service, on_ready))
        environment = {**self._environment, "NOTIFY_SOCKET": str(address)}
        pauses = Pauses()
        try:
            while not self._stop.is_set():
                started = asyncio.get_running_loop().time()
                process = self._processes[service.name] = await ServiceProcess.start(service, environment, self._screen)
                if self._stop.is_set():  # while it was being started
                    process.ask_to_stop()
                code = await process.finished()
                if self._stop.is_set():
                    return
                if code == BAD_CONFIGURATION:
                    self._screen.bad(
                        f"{service.name} rejects its configuration (see its lines above). Correct it and start again."
                    )
                    self._exit_code = BAD_CONFIGURATION
                    self._stop.set()
                    return
                if code > 0 and (taken := self._taken_port(service)):
                    self._screen.bad(taken)
                    if service.name not in self._ready:
                        self._exit_code = PORT_TAKEN
                        self._stop.set()
                        return
                pause = pauses.after(asyncio.get_running_loop().time() - started)
                self._screen.bad(f"{service.name} {_how_it_ended(code)}; starting it again in {pause:g} s.")
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stop.wait(), timeout=pause)
        finally:
            listener.close()

    def _taken_port(self, service: Service) -> str | None:
        """Why a service that has just ended cannot listen; None if it can, or does not listen at all."""
        try:
            if address := self._addresses.get(service.name):
                address.check()
        except PortError as error:
            return f"{service.name} cannot listen. {error}"
        return None

    def _is_ready(self, service: Service, on_ready: Callable[[], None]) -> None:
        if service.name not in self._ready:  # it reports again after every restart
            self._ready.add(service.name)
            if len(self._ready) == len(self._services):
                on_ready()

    async def _stop_all(self, keepers: Sequence[asyncio.Future[None]]) -> None:
        """Send SIGTERM, wait for the grace period or a second signal, then send SIGKILL."""
        for process in self._processes.values():
            process.ask_to_stop()
        hurry = asyncio.create_task(self._hurry.wait())
        ended = asyncio.gather(*keepers, return_exceptions=True)
        either: list[asyncio.Future[Any]] = [ended, hurry]
        await asyncio.wait(either, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        if not ended.done() and not self._hurry.is_set():
            self._screen.bad(f"Not everything stopped within {self._grace:g} s; killing what is left.")
        for process in self._processes.values():
            process.kill()
        hurry.cancel()
        for failure in await ended:
            if isinstance(failure, Exception):
                raise failure


def stop_signals() -> list[signal.Signals]:
    """The signals that stop us. A closed terminal is one, unless we were started with `nohup`."""
    hang_up = [] if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else [signal.SIGHUP]
    return [signal.SIGINT, signal.SIGTERM, *hang_up]


def _how_it_ended(code: int) -> str:
    if code >= 0:
        return f"stopped by itself with exit code {code}"
    with contextlib.suppress(ValueError):
        return f"was ended by {signal.Signals(-code).name}"
    return f"was ended by signal {-code}"

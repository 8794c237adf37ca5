"""Decides which observers run, starts them, and says where to look. What is missing is said, and the rest goes on."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from waybill.config.trace_settings import TraceSettings
from waybill_cli.local.addresses import Address, PortError
from waybill_cli.local.observers.jaeger import jaeger_command
from waybill_cli.local.observers.observer import Observer
from waybill_cli.local.observers.programs import JAEGER, PROMETHEUS, ProgramError
from waybill_cli.local.observers.prometheus import prometheus_command
from waybill_cli.local.orphans import MARK
from waybill_cli.local.screen import Screen
from waybill_cli.local.service_group import Keeper

FOLDER = "observe"
PROMETHEUS_PORT, JAEGER_PORT, OTLP_PORT = 9090, 16686, 4318


@dataclass(slots=True)
class ObserverGroup:
    """What runs to look at the services."""

    environment: dict[str, str] = field(default_factory=dict)
    """The settings with which the services send traces there."""
    places: list[str] = field(default_factory=list)
    """Where a person looks, as sentences."""
    keepers: list[Keeper] = field(default_factory=list)


@contextmanager
def observing(
    home: Path, metrics: Mapping[str, Address], screen: Screen, *, traces: TraceSettings
) -> Iterator[ObserverGroup]:
    """Run what is found on this machine until the end of the block.

    `metrics` are the addresses at which services serve their metrics. If `traces` are sent somewhere already, they
    still are, and no Jaeger is started.
    """
    observers, running = ObserverGroup(), list[Observer]()
    folder = home / FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def run(name: str, command: Sequence[str]) -> None:
        environment = {**os.environ, MARK: str(home)}
        (folder / f"{name.lower()}.log").unlink(missing_ok=True)  # of the last time
        observer = Observer(name, command, folder=folder, environment=environment, screen=screen)
        observer.start()
        running.append(observer)
        observers.keepers.append(observer.keep)

    try:
        _or_say_why_not(screen, lambda: _add_prometheus(observers, folder, metrics, run))
        if traces.otlp_endpoint is None:
            _or_say_why_not(screen, lambda: _add_jaeger(observers, folder, run))
        else:
            observers.places.append(f"Traces go to {traces.otlp_endpoint}, as WAYBILL_OTLP_ENDPOINT says.")
        if traces.trace_url_template is not None:  # somebody knows a better place to look at them
            observers.environment.pop("WAYBILL_TRACE_URL_TEMPLATE", None)
        yield observers
    finally:
        for each in running:
            each.stop()


Run = Callable[[str, Sequence[str]], None]


def _add_prometheus(observers: ObserverGroup, folder: Path, metrics: Mapping[str, Address], run: Run) -> None:
    program, port = PROMETHEUS.find(), _known_or_free(PROMETHEUS_PORT)
    targets = {service: address.url.removeprefix("http://") for service, address in metrics.items()}
    run("Prometheus", prometheus_command(program, folder, port=port, targets=targets))
    observers.places.append(f"Metrics and alerts: http://127.0.0.1:{port}/alerts (Prometheus)")


def _add_jaeger(observers: ObserverGroup, folder: Path, run: Run) -> None:
    program, port, otlp_port = JAEGER.find(), _known_or_free(JAEGER_PORT), _known_or_free(OTLP_PORT)
    run("Jaeger", jaeger_command(program, folder, port=port, otlp_port=otlp_port))
    observers.environment = {
        "WAYBILL_OTLP_ENDPOINT": f"http://127.0.0.1:{otlp_port}",
        "WAYBILL_OTLP_PROTOCOL": "http",
        "WAYBILL_TRACE_URL_TEMPLATE": f"http://127.0.0.1:{port}/trace/{{trace_id}}",
    }
    observers.places.append(f"Traces: http://127.0.0.1:{port} (Jaeger); each job links to its own")


def _or_say_why_not(screen: Screen, add: Callable[[], None]) -> None:
    try:
        add()
    except ProgramError as error:
        screen.bad(str(error))


def _known_or_free(port: int) -> int:
    """The port that people know or, if somebody has it (Debian starts a Prometheus by itself), one that is free."""
    try:
        Address("127.0.0.1", port, "").check()
    except PortError:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            free: int = probe.getsockname()[1]
            return free
    return port

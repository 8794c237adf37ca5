"""`waybill up --observe` runs Prometheus and Jaeger beside the services, and goes on without what is missing."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import support.stand_in_jaeger
from local.conftest import StartUp
from local.processes import UP, Up, processes_of
from support.child_processes import free_port
from support.patience import wait_until
from support.prometheus import PROMETHEUS, needs
from waybill.config.trace_settings import TraceSettings
from waybill_cli.local.addresses import Address
from waybill_cli.local.observers import group
from waybill_cli.local.screen import Screen
from waybill_cli.local.settings import load_settings


@pytest.fixture
def jaeger(tmp_path: Path) -> str:
    """The Jaeger that $JAEGER_BIN names or, without one, a stand-in."""
    if given := os.environ.get("JAEGER_BIN"):
        return given
    program = tmp_path / "jaeger"
    stand_in = shlex.join([sys.executable, "-I", support.stand_in_jaeger.__file__])
    program.write_text(f'#!/bin/sh\nexec {stand_in} "$@"\n')
    program.chmod(0o755)
    return str(program)


def address_in(line: str) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert found is not None, line
    return found[0]


def ask(url: str) -> object:
    answer = httpx.get(url, trust_env=False, timeout=10)
    answer.raise_for_status()
    return answer.json()["data"]


def test_metrics_and_traces_arrive_and_nothing_is_left(start_up: StartUp, home: Path, jaeger: str) -> None:
    """One start for all promises, because it takes ten seconds."""
    ports = {f"WAYBILL_{name}_METRICS_PORT": str(free_port()) for name in ("API", "GATEWAY", "WORKER")}
    up = start_up((*UP, "--observe"), PROMETHEUS_BIN=needs(PROMETHEUS), JAEGER_BIN=jaeger, **ports)
    metrics = address_in(up.wait_for("Metrics and alerts: "))
    traces = address_in(up.wait_for("Traces: "))

    wait_until(
        lambda: _health(metrics) == {"waybill-api": "up", "waybill-gateway": "up", "waybill-worker": "up"}, "scrapes"
    )
    rules = ask(f"{metrics}/api/v1/rules")
    assert isinstance(rules, dict)
    assert {"waybill-objective", "waybill-queue", "waybill-fleet", "waybill-upkeep"} == {
        each["name"] for each in rules["groups"]
    }
    api = address_in(up.wait_for("Waybill is ready: "))
    httpx.get(f"{api}/api/jobs", trust_env=False).raise_for_status()
    wait_until(lambda: ask(f"{traces}/api/services"), "a span of the API")

    _a_prometheus_that_dies_is_started_again(up, metrics)
    assert up.stop(signal.SIGTERM) == 0, up.text
    assert not processes_of(home)


def _health(metrics: str) -> dict[str, str]:
    targets = ask(f"{metrics}/api/v1/targets")
    assert isinstance(targets, dict)
    return {each["labels"]["job"]: each["health"] for each in targets["activeTargets"]}


def _a_prometheus_that_dies_is_started_again(up: Up, metrics: str) -> None:
    (program,) = [each for each in processes_of(up.home) if each.name() == "prometheus"]
    program.kill()
    up.wait_for("Prometheus ended by itself; its last lines are in")
    wait_until(lambda: _answers(f"{metrics}/-/ready"), "Prometheus' return, at the same address")


def _answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False).status_code == 200
    return False


@pytest.fixture
def output() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def screen(output: io.StringIO) -> Screen:
    return Screen((), output)


def test_what_is_missing_is_said_with_how_to_get_it(
    tmp_path: Path, screen: Screen, output: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAEGER_BIN", raising=False)
    monkeypatch.setenv("PROMETHEUS_BIN", "/nowhere/prometheus")
    with group.observing(tmp_path, {}, screen, traces=TraceSettings()) as observers:
        assert observers == group.ObserverGroup(), "and the services start as they would without"
    prometheus, jaeger = output.getvalue().splitlines()
    assert "PROMETHEUS_BIN=/nowhere/prometheus is no program" in prometheus
    assert "apt install prometheus" in prometheus
    assert "There is no Jaeger, so nothing collects traces." in jaeger
    assert "https://www.jaegertracing.io/download" in jaeger
    assert "JAEGER_BIN=/path/to/it" in jaeger


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as somebody:
        somebody.bind(("127.0.0.1", 0))
        somebody.listen()
        yield somebody.getsockname()[1]


def test_a_port_that_is_taken_is_no_obstacle(
    tmp_path: Path, screen: Screen, jaeger: str, taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian's package starts a Prometheus by itself, on the port that people know."""
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("PROMETHEUS_BIN", raising=False)
    monkeypatch.setenv("JAEGER_BIN", jaeger)
    monkeypatch.setattr(group, "JAEGER_PORT", taken)
    monkeypatch.setattr(group, "OTLP_PORT", taken)
    with group.observing(tmp_path, {}, screen, traces=TraceSettings()) as observers:
        (place,) = observers.places
        assert f":{taken}" not in place
        assert f":{taken}" not in observers.environment["WAYBILL_OTLP_ENDPOINT"]
        shown = observers.environment["WAYBILL_TRACE_URL_TEMPLATE"]
        assert shown == f"{address_in(place)}/trace/{{trace_id}}"
        wait_until(lambda: _answers(f"{address_in(place)}/api/services"), "Jaeger's first answer")
    assert not _answers(f"{address_in(place)}/api/services"), "it ends with the block"


def test_traces_that_already_go_somewhere_still_do(
    tmp_path: Path, screen: Screen, jaeger: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("PROMETHEUS_BIN", raising=False)
    monkeypatch.setenv("JAEGER_BIN", jaeger)
    settings = TraceSettings().model_copy(update={"otlp_endpoint": "http://collector:4318"})
    with group.observing(tmp_path, {}, screen, traces=settings) as observers:
        assert observers.environment == {}
        assert observers.keepers == []
        assert observers.places == ["Traces go to http://collector:4318, as WAYBILL_OTLP_ENDPOINT says."]


def test_taken_metrics_ports_are_a_clear_error_if_somebody_wants_to_observe(start_up: StartUp, taken: int) -> None:
    up = start_up((*UP, "--observe"), WAYBILL_API_METRICS_PORT=str(taken))
    assert up.wait() == 1
    assert f"Port {taken} on 127.0.0.1 is taken" in up.text
    assert f"WAYBILL_API_METRICS_PORT={taken + 10}" in up.text


def test_services_are_scraped_where_their_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("API", "GATEWAY"):
        monkeypatch.delenv(f"WAYBILL_{name}_METRICS_PORT", raising=False)
    monkeypatch.setenv("WAYBILL_WORKER_METRICS_PORT", "0")
    assert load_settings().metrics == {
        "api": Address("127.0.0.1", 9080, "WAYBILL_API_METRICS_PORT"),
        "gateway": Address("127.0.0.1", 9081, "WAYBILL_GATEWAY_METRICS_PORT"),
    }

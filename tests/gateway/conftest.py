"""Gateways for the tests: one for many quick questions, and as many of their own as a test asks for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.gateway import RUDE, Gateway

StartGateway = Callable[..., Gateway]


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[StartGateway]:
    started: list[Gateway] = []

    def start(parse: str | None = RUDE, *, ready: bool = True, folder: str = "gateway", **settings: str) -> Gateway:
        started.append(Gateway(tmp_path / folder, parse, ready=ready, **settings))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture(scope="module")
def obedient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway whose documents say themselves what their parser does (`support.gateway.told`)."""
    folder = tmp_path_factory.mktemp("obedient")
    gateway = Gateway(folder, RUDE, max_upload_mb="1", gateway_parse_timeout="3", gateway_memory_mb="256")
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A gateway as it is shipped."""
    gateway = Gateway(tmp_path_factory.mktemp("gateway"))
    yield gateway
    gateway.close()

"""`compose.yaml` fits what is installed. No Docker engine is needed, so whether it runs is not tested."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from waybill.config.registry import all_settings
from waybill.config.sources import variable
from waybill_cli.group import commands
from waybill_cli.local.up import SERVICES

SERVERS = {"postgres"}
"""Services that run somebody else's image."""


@pytest.fixture(scope="module")
def root(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath


@pytest.fixture(scope="module")
def compose(root: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((root / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {name: service for name, service in compose["services"].items() if name not in SERVERS}


def test_every_service_that_waybill_up_runs_is_there(compose: dict[str, Any]) -> None:
    modules = {service["command"][2] for service in ours(compose).values() if service["command"][0] == "python"}
    assert modules == {service.module for service in SERVICES}


def test_every_command_is_installed(compose: dict[str, Any]) -> None:
    for name, service in ours(compose).items():
        program, *arguments = service["command"]
        if program == "waybill":
            assert arguments[0] in commands(), name
        else:
            assert (program, arguments[0]) == ("python", "-m"), name
            assert find_spec(f"{arguments[1]}.__main__"), name


def test_every_variable_is_a_setting(compose: dict[str, Any]) -> None:
    known = {variable(field) for settings in all_settings() for field in settings.model_fields}
    for name, service in ours(compose).items():
        assert set(service["environment"]) <= known, name


def test_services_wait_for_services_that_exist_and_for_a_state_they_can_reach(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[other], f"{name} waits for {other}"
            else:
                assert services[other]["restart"] == "no", f"{name} waits for the end of {other}"


def test_volumes_and_copied_files_exist(compose: dict[str, Any], root: Path) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in compose["volumes"]
    copied = re.findall(r"^COPY (.+) \S+$", compose["x-waybill"]["build"]["dockerfile_inline"], re.MULTILINE)
    for path in " ".join(copied).split():
        assert (root / path).exists(), path
    packages = re.search(r"^PACKAGES := (.+)$", (root / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert packages is not None
    assert {each.partition("/")[0] for each in packages[1].split()} <= set(" ".join(copied).split())


def test_ports_are_published_on_loopback_and_the_gateway_is_not(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8080:8080"]}


def test_the_file_holds_no_secret(root: Path) -> None:
    text = (root / "compose.yaml").read_text(encoding="utf-8")
    for value in re.findall(r"PASSWORD: (\S.*)$|waybill:([^@\s]+)@", text, re.MULTILINE):
        assert "".join(value).startswith("${POSTGRES_PASSWORD")

"""`compose.yaml` fits what is installed. No Docker engine is needed, so whether it runs is not tested."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from support import dockerfiles
from support.dockerfiles import Stage
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


def target(service: dict[str, Any]) -> str:
    return str(service["build"]["target"])


@pytest.fixture(scope="module")
def stages(root: Path, compose: dict[str, Any]) -> dict[str, Stage]:
    """The targets that its services are built from."""
    (path,) = {service["build"]["dockerfile"] for service in ours(compose).values()}
    return dockerfiles.read(root / path)


def test_every_service_that_waybill_up_runs_is_there(compose: dict[str, Any], stages: dict[str, Stage]) -> None:
    started = [stages[target(service)].command("ENTRYPOINT") for service in ours(compose).values()]
    modules = {arguments[2] for arguments in started if arguments[0] == "python"}
    assert modules == {service.module for service in SERVICES}


def test_every_image_is_named_for_its_target(compose: dict[str, Any], stages: dict[str, Stage]) -> None:
    for service in ours(compose).values():
        assert service["image"] == f"waybill-{target(service)}"
        assert service["build"]["context"] == "."
        assert target(service) in stages


def test_every_command_exists(compose: dict[str, Any]) -> None:
    given = {name: service["command"] for name, service in ours(compose).items() if "command" in service}
    assert given == {"migrate": ["migrate"], "janitor": ["--every"]}
    assert "migrate" in commands()


def test_services_run_without_rights_on_a_root_that_is_read_only(compose: dict[str, Any]) -> None:
    for service in ours(compose).values():
        assert service["read_only"]
        assert service["tmpfs"] == ["/tmp"]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_every_variable_is_a_setting(compose: dict[str, Any]) -> None:
    known = {variable(field) for settings in all_settings() for field in settings.model_fields}
    for name, service in ours(compose).items():
        assert set(service["environment"]) <= known, name


def test_services_wait_for_services_that_exist_and_for_a_state_they_can_reach(
    compose: dict[str, Any], stages: dict[str, Stage]
) -> None:
    services = compose["services"]
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                checked = "healthcheck" in services[other] or stages[target(services[other])].all("HEALTHCHECK")
                assert checked not in (False, [], ["NONE"]), f"{name} waits for {other}"
            else:
                assert services[other]["restart"] == "no", f"{name} waits for the end of {other}"


def test_volumes_exist(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            assert volume.partition(":")[0] in compose["volumes"]


def test_ports_are_published_on_loopback_and_the_gateway_is_not(compose: dict[str, Any]) -> None:
    published = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert published == {"api": ["127.0.0.1:8080:8080"]}


def test_the_file_holds_no_secret(root: Path) -> None:
    text = (root / "compose.yaml").read_text(encoding="utf-8")
    for value in re.findall(r"PASSWORD: (\S.*)$|waybill:([^@\s]+)@", text, re.MULTILINE):
        assert "".join(value).startswith("${POSTGRES_PASSWORD")

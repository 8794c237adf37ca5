"""The variables of the pods: real settings, once each, with which every service starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from support.chart import MATRIX, Installation, PodTemplate, Render, Rendered, merged
from waybill.config import ApiSettings, CommonSettings
from waybill.config.registry import all_settings, load_service
from waybill.config.settings import ProcessSettings
from waybill.config.sources import bare_names, variable
from waybill_engine.settings import WorkerSettings
from waybill_gateway.settings import GatewaySettings
from waybill_janitor.settings import JanitorSettings

SETTINGS: dict[str, type[ProcessSettings]] = {
    "api": ApiSettings,
    "worker": WorkerSettings,
    "gateway": GatewaySettings,
    "janitor": JanitorSettings,
    "migration": CommonSettings,
}
ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - of a container
OTHERS = {"HTTPS_PROXY", "PGDATA", "POSTGRES_USER", "POSTGRES_DB", "POSTGRES_PASSWORD"}
"""What is read by somebody else: the values' own, and the image of Postgres."""
OF_COMMANDS = {"WAYBILL_API_URL", "WAYBILL_API_KEY"}
"""What `waybill submit` reads: options of a command are no settings."""


@pytest.fixture(scope="module")
def known() -> set[str]:
    names = set(OTHERS | OF_COMMANDS)
    for settings in all_settings():
        for name, field in settings.model_fields.items():
            names.add(variable(name))
            names.update(bare.name for bare in bare_names(field))
    return names


@pytest.mark.parametrize("name", MATRIX)
def test_every_variable_is_a_setting_and_is_there_once(installation: Installation, known: set[str], name: str) -> None:
    for pod in installation(name).pods:
        for container in pod.containers:
            names = [one["name"] for one in container.get("env", ())]
            assert len(names) == len(set(names)), (pod.owner, container["name"])
            assert set(names) <= known, (pod.owner, container["name"])


@pytest.mark.parametrize("name", MATRIX)
def test_every_service_starts_with_its_variables(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    mappings = tmp_path / "mappings"
    mappings.mkdir()
    rendered = installation(name)
    for pod in rendered.pods:
        if pod.component in SETTINGS:
            with monkeypatch.context() as patched:
                for each in [each for each in os.environ if each.startswith("WAYBILL_")]:
                    patched.delenv(each)
                for each, value in environment(rendered, pod).items():
                    patched.setenv(each, value.replace("/etc/waybill/mappings", str(mappings)))
                settings, pipelines = load_service(SETTINGS[pod.component])
            check(pod, settings, pipelines)


def check(pod: PodTemplate, settings: ProcessSettings, pipelines: list[ProcessSettings]) -> None:
    assert (settings.log_format, settings.metrics_host) == ("json", ALL_ADDRESSES)
    if pod.component in ("api", "gateway"):
        assert getattr(settings, f"{pod.component}_host") == ALL_ADDRESSES
    ports = {port["name"]: port["containerPort"] for port in pod.main.get("ports", ())}
    for port, setting in (("http", f"{pod.component}_port"), ("metrics", f"{pod.component}_metrics_port")):
        if port in ports:
            assert getattr(settings, setting) == ports[port]
    if pod.component in ("api", "worker"):
        (url,) = {one.gateway_url for one in pipelines if hasattr(one, "gateway_url")}
        assert url == "http://prod-waybill-gateway:8081"


def environment(rendered: Rendered, pod: PodTemplate) -> dict[str, str]:
    """The variables as the container gets them. What is in secrets of others has the form that it should have."""
    found = {}
    for one in pod.main["env"]:
        source = one.get("valueFrom", {})
        if secret := source.get("secretKeyRef"):
            ours = secret["name"] in rendered.of("Secret")
            value = rendered.secret(secret["name"], secret["key"]) if ours else FROM_OTHERS.get(one["name"], "x" * 40)
        elif source:
            value = {"metadata.namespace": "papers", "metadata.name": "pod", "metadata.uid": "0197"}[
                source["fieldRef"]["fieldPath"]
            ]
        else:
            value = one["value"]
        found[one["name"]] = value
    return found


FROM_OTHERS = {
    "WAYBILL_DATABASE_URL": "postgresql://waybill:secret@db.test/waybill",
    "WAYBILL_OTLP_HEADERS": "api-key=secret",
}


def test_numbers_stay_numbers(installation: Installation) -> None:
    env = {one["name"]: one.get("value") for one in installation("everything").pods_of("api")[0].main["env"]}
    assert env["WAYBILL_LOG_FILE_MAX_BYTES"] == "200000000"
    assert env["WAYBILL_ACCESS_LOG"] == "false"
    assert env["WAYBILL_TRACE_SAMPLE_RATIO"] == "0.1"


def test_each_pod_has_the_secrets_that_it_needs_and_no_other(installation: Installation) -> None:
    database = {"WAYBILL_DATABASE_URL", "WAYBILL_AUDIT_SECRET"}
    expected = {
        "api": database | {"WAYBILL_API_SESSION_SECRET", "WAYBILL_GATEWAY_SECRET"},
        "worker": database | {"WAYBILL_GATEWAY_SECRET"},
        "gateway": {"WAYBILL_GATEWAY_SECRET"},
        "operator": database,
        "uninstall": database,
        "janitor": database,
        "migration": database,
        "postgres": {"POSTGRES_PASSWORD"},
        "test": {"WAYBILL_API_KEY"},
    }
    for pod in installation("minimal").pods:
        found = {one["name"] for one in pod.main["env"] if "secretKeyRef" in one.get("valueFrom", {})}
        assert found == expected[pod.component], pod.owner
    credentials = {"WAYBILL_STORAGE_KEY_ID", "WAYBILL_STORAGE_SECRET"}
    for pod in installation("S3").pods:
        has = credentials <= {one["name"] for one in pod.main["env"]}
        assert has == (pod.component in ("api", "worker", "janitor")), pod.owner


def test_the_migration_may_have_an_address_of_its_own(installation: Installation) -> None:
    def address(component: str) -> Any:
        env = installation("external database").pods_of(component)[0].main["env"]
        return next(one["valueFrom"]["secretKeyRef"] for one in env if one["name"] == "WAYBILL_DATABASE_URL")

    assert address("migration") == {"name": "my-owner", "key": "url"}
    assert address("api") == {"name": "my-database", "key": "uri"}


def test_host_names_of_people_do_not_shut_out_the_cluster(installation: Installation) -> None:
    env = {one["name"]: one.get("value") for one in installation("everything").pods_of("api")[0].main["env"]}
    assert env["WAYBILL_API_HOSTS"].split(",") == [
        "papers.test",
        "prod-waybill-api",
        "prod-waybill-api.papers",
        "prod-waybill-api.papers.svc",
        "prod-waybill-api.papers.svc.cluster.local",
    ]
    assert env["WAYBILL_API_HTTPS"] == "true"


def test_https_follows_the_ingress_unless_somebody_says_otherwise(render: Render) -> None:
    def https(values: dict[str, Any]) -> str:
        env = render(values).pods_of("api")[0].main["env"]
        return next(str(one["value"]) for one in env if one["name"] == "WAYBILL_API_HTTPS")

    tls = {"ingress": {"enabled": True, "hosts": ["papers.test"], "tls": [{"secretName": "t"}]}}
    assert https(tls) == "true"
    assert https(merged(tls, {"api": {"https": False}})) == "false"
    assert https({"api": {"https": True}}) == "true"

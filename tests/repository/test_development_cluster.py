"""`k8s/dev` and `k8s/examples` hold together: references, selectors and ports match, and every pod is restricted.

`make test-images` runs the images of these servers.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml  # type: ignore[import-untyped]

from support import dockerfiles
from support.prometheus import PROMTOOL, needs
from waybill.config.registry import all_settings
from waybill.config.sources import variable

ROOT = Path(__file__).parents[2]
DEV = ROOT / "k8s/dev"
CHART = ROOT / "charts/waybill"
EXAMPLES = sorted((ROOT / "k8s/examples").glob("*.yaml"))
METRICS_PORTS = {"api": 9080, "gateway": 9081, "operator": 9083, "worker": 9082}


def documents(*paths: Path) -> list[dict[str, Any]]:
    return [each for path in paths for each in yaml.safe_load_all(path.read_text(encoding="utf-8"))]


KUSTOMIZATION = documents(DEV / "kustomization.yaml")[0]
OBJECTS = documents(*(DEV / name for name in KUSTOMIZATION["resources"]))


def of_kind(kind: str) -> dict[str, dict[str, Any]]:
    return {each["metadata"]["name"]: each for each in OBJECTS if each["kind"] == kind}


def pods() -> dict[str, dict[str, Any]]:
    return {name: each["spec"]["template"] for name, each in of_kind("Deployment").items()}


@pytest.fixture(params=sorted(pods()))
def pod(request: pytest.FixtureRequest) -> dict[str, Any]:
    return pods()[request.param]


def test_every_file_is_listed_and_the_values_are_the_charts() -> None:
    files = {path.name for path in DEV.glob("*.yaml")}
    assert files - {"kustomization.yaml", "values.yaml"} == set(KUSTOMIZATION["resources"])


def test_there_is_what_waybill_can_use() -> None:
    assert set(pods()) == {"jaeger", "postgres", "prometheus", "s3"}


def test_the_namespace_admits_only_restricted_pods() -> None:
    (namespace,) = of_kind("Namespace").values()
    assert namespace["metadata"]["name"] == KUSTOMIZATION["namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"


def test_a_pod_has_no_rights_and_a_limit(pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["runAsUser"] > 0
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False
    assert spec["enableServiceLinks"] is False
    for container in spec["containers"]:
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
        assert "memory" in container["resources"]["limits"]


def test_what_a_pod_refers_to_exists(pod: dict[str, Any]) -> None:
    volumes = {volume["name"]: volume for volume in pod["spec"]["volumes"]}
    for volume in volumes.values():
        assert volume.get("emptyDir") == {} or volume["configMap"]["name"] in of_kind("ConfigMap")
    for container in pod["spec"]["containers"]:
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes.keys()
        ports = {port["name"] for port in container["ports"]}
        probe = container["readinessProbe"]
        assert "exec" in probe or probe["httpGet"]["port"] in ports
        for each in container.get("env", []):
            if "valueFrom" in each:
                reference = each["valueFrom"]["secretKeyRef"]
                assert reference["key"] in of_kind("Secret")[reference["name"]]["stringData"]


def test_a_service_leads_to_ports_of_its_pods() -> None:
    for name, service in of_kind("Service").items():
        if name.startswith("waybill-metrics-"):
            continue
        assert service["spec"]["selector"] == pods()[name]["metadata"]["labels"]
        ports = {port["name"]: port["containerPort"] for port in pods()[name]["spec"]["containers"][0]["ports"]}
        for port in service["spec"]["ports"]:
            assert ports[port["targetPort"]] == port["port"]


def test_only_the_namespace_may_reach_the_servers() -> None:
    (policy,) = of_kind("NetworkPolicy").values()
    chosen = policy["spec"]["podSelector"]["matchLabels"].items()
    assert all(chosen <= pod["metadata"]["labels"].items() for pod in pods().values())
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {}}]}]


def test_every_image_has_one_tag_and_one_place_to_replace_it() -> None:
    used = {container["image"] for pod in pods().values() for container in pod["spec"]["containers"]}
    assert {image["name"] for image in KUSTOMIZATION["images"]} == used
    assert all(image["newTag"] for image in KUSTOMIZATION["images"])


def test_there_is_a_replacement_for_each_image() -> None:
    folder = ROOT / "deploy/images/dev"
    stages = {**dockerfiles.read(folder / "Dockerfile"), **dockerfiles.read(folder / "jaeger.Dockerfile")}
    built = {title for stage in stages.values() if (title := stage.labels().get("org.opencontainers.image.title"))}
    assert built == {f"waybill-dev-{name}" for name in pods()}


def test_replacements_run_as_the_users_of_the_pods() -> None:
    folder = ROOT / "deploy/images/dev"
    stages = {**dockerfiles.read(folder / "Dockerfile"), **dockerfiles.read(folder / "jaeger.Dockerfile")}
    for name, each in pods().items():
        assert stages[name].only("USER").partition(":")[0] == str(each["spec"]["securityContext"]["runAsUser"])


def configuration(name: str, file: str) -> str:
    text: str = of_kind("ConfigMap")[name]["data"][file]
    return text


def test_prometheus_finds_every_service_by_the_name_that_alerts_know() -> None:
    (job,) = yaml.safe_load(configuration("prometheus", "prometheus.yml"))["scrape_configs"]
    (discovery,) = job["dns_sd_configs"]
    (relabel,) = job["relabel_configs"]
    services = {name: each["spec"] for name, each in of_kind("Service").items() if "metrics" in name}
    assert {f"_metrics._tcp.{name}" for name in services} == set(discovery["names"])
    found = {re.fullmatch(relabel["regex"], name)[1] for name in discovery["names"]}  # type: ignore[index]
    assert found == set(METRICS_PORTS)
    assert relabel["replacement"] == "waybill-$1"
    for name, spec in services.items():
        component = name.removeprefix("waybill-metrics-")
        assert spec["clusterIP"] == "None", "a record for each pod"
        assert spec["selector"] == {"app.kubernetes.io/name": "waybill", "app.kubernetes.io/component": component}
        assert spec["ports"] == [{"name": "metrics", "port": METRICS_PORTS[component], "targetPort": "metrics"}]


def test_prometheus_accepts_its_configuration(tmp_path: Path) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text(configuration("prometheus", "prometheus.yml"), encoding="utf-8")
    subprocess.run([needs(PROMTOOL), "check", "config", "--syntax-only", file], check=True, capture_output=True)


def test_jaeger_receives_on_the_ports_of_its_service(tmp_path: Path) -> None:
    text = configuration("jaeger", "config.yaml")
    endpoints = set(re.findall(r'endpoint: "0\.0\.0\.0:(\d+)"', text))
    assert endpoints == {str(port["port"]) for port in of_kind("Service")["jaeger"]["spec"]["ports"]}
    if program := os.environ.get("JAEGER_BIN"):
        file = tmp_path / "config.yaml"
        file.write_text(text, encoding="utf-8")
        subprocess.run([program, "validate", f"--config=file:{file}"], check=True, timeout=60)


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    return documents(DEV / "values.yaml")[0]


def test_the_charts_values_lead_to_these_servers(values: dict[str, Any]) -> None:
    database = of_kind("Secret")[values["database"]["existingSecret"]]["stringData"]
    (container,) = pods()["postgres"]["spec"]["containers"]
    given = {each["name"]: each.get("value") for each in container["env"]}
    login = f"{given['POSTGRES_USER']}:{database['password']}"
    assert database["url"] == f"postgresql://{login}@postgres:5432/{given['POSTGRES_DB']}"
    storage = of_kind("Secret")[values["storage"]["existingSecret"]]["stringData"]
    assert set(storage) == {"key-id", "secret"}
    (container,) = pods()["s3"]["spec"]["containers"]
    bucket = next(each["value"] for each in container["env"] if each["name"] == "S3_BUCKET")
    assert values["storage"]["url"].startswith(f"s3://{bucket}?endpoint=http://s3:9000&")
    assert values["networkPolicies"]["storage"]["ports"] == [9000]
    assert values["telemetry"]["otlpEndpoint"] == "http://jaeger:4318"


def test_the_chart_accepts_these_values(values: dict[str, Any]) -> None:
    schema = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(values, schema)


def pools() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in EXAMPLES:
        for each in documents(path):
            if each["kind"] == "WorkerPool":
                yield path.name, each


@pytest.fixture(scope="module")
def definition() -> dict[str, Any]:
    """The schema of the custom resource. Its file is a template, of which only the metadata depend on values."""
    text = (CHART / "templates/crds/workerpools.yaml").read_text(encoding="utf-8")
    plain = re.sub(r"\{\{-? ?/\*.*?\*/ ?-?\}\}", "", text, flags=re.DOTALL)
    lines = [line for line in plain.splitlines() if "{{" not in line]
    loaded: dict[str, Any] = yaml.safe_load("\n".join(lines))
    schema: dict[str, Any] = _nullable(loaded["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return schema


def _nullable(schema: Any) -> Any:
    """What Kubernetes says with `nullable`, in the words of JSON Schema."""
    if isinstance(schema, list):
        return [_nullable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _nullable(each) for name, each in schema.items()}
    return {**plain, "type": [plain["type"], "null"]} if plain.get("nullable") is True else plain


def unknown(value: Any, schema: dict[str, Any], path: str = "") -> list[str]:
    """Fields that the schema does not have. An API server would drop them without a word."""
    if isinstance(value, list):
        return [each for item in value for each in unknown(item, schema["items"], f"{path}[]")]
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return []
    known, further = schema.get("properties", {}), schema.get("additionalProperties")
    result = []
    for name, each in value.items():
        if name in known or further:
            result += unknown(each, known.get(name, further), f"{path}.{name}")
        else:
            result.append(f"{path}.{name}")
    return result


@pytest.mark.parametrize(("file", "pool"), list(pools()), ids=lambda each: each if isinstance(each, str) else "")
def test_an_example_is_a_valid_pool(file: str, pool: dict[str, Any], definition: dict[str, Any]) -> None:
    assert pool["apiVersion"] == "waybill.dev/v1alpha1", file
    jsonschema.validate(pool["spec"], definition["properties"]["spec"])
    assert unknown(pool["spec"], definition["properties"]["spec"]) == []


def test_a_field_that_no_pool_has_is_found(definition: dict[str, Any]) -> None:
    spec = {"autoscaling": {"maxReplica": 3}, "podOverrides": {"tolerations": [{"any": "thing"}]}}
    assert unknown(spec, definition["properties"]["spec"]) == [".autoscaling.maxReplica"]


def test_every_example_is_documented_and_its_variables_are_settings() -> None:
    page = (ROOT / "docs/development-cluster.md").read_text(encoding="utf-8")
    assert {path.name for path in EXAMPLES} == set(re.findall(r"\(\.\./k8s/examples/([a-z-]+\.yaml)\)", page))
    known = {variable(field) for settings in all_settings() for field in settings.model_fields}
    for _, pool in pools():
        assert {each["name"] for each in pool["spec"].get("env", [])} <= known

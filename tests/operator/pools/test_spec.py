"""A pool's spec, and that the CRD in the chart says the same."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel

from waybill_operator.pools.overrides import OWN_ANNOTATIONS, VOLUME_SOURCES, PodOverrides
from waybill_operator.pools.spec import (
    MANAGED_ENV,
    Autoscaling,
    DisruptionBudget,
    EnvVar,
    InvalidSpec,
    WorkerPoolSpec,
    parse,
)

CRD = Path(__file__).parents[3] / "charts/waybill/templates/crds/workerpools.yaml"


def crd() -> Any:
    """The definition as it is rendered; only its switches are templates."""
    text = "\n".join(line for line in CRD.read_text().splitlines() if not line.strip().startswith("{{"))
    return yaml.safe_load(text)


def schema(*path: str) -> Any:
    found = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        found = found["properties"][name]
    return found


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (WorkerPoolSpec, ("spec",)),
        (Autoscaling, ("spec", "autoscaling")),
        (PodOverrides, ("spec", "podOverrides")),
        (DisruptionBudget, ("spec", "disruptionBudget")),
    ],
)
def test_the_crd_has_the_fields_of_the_model_with_the_same_defaults_and_bounds(
    model: type[BaseModel], path: tuple[str, ...]
) -> None:
    ours = model.model_json_schema(by_alias=True)["properties"]
    theirs = schema(*path)["properties"]
    assert set(theirs) == set(ours)
    filled = model().model_dump(by_alias=True)
    for name, said in theirs.items():
        if said.get("type") == "integer":
            for bound in ("minimum", "maximum"):
                assert _number_rules(ours[name])[bound] == said[bound], f"{name}: {bound}"
        if "default" in said and said.get("type") not in ("object", "array"):
            assert said["default"] == filled[name], name
        if "enum" in said and name == "source":
            assert said["enum"] == ours[name]["enum"]
        if said.get("type") == "array" and "maxItems" in ours[name]:
            assert said["maxItems"] == ours[name]["maxItems"], name


def _number_rules(field: dict[str, Any]) -> dict[str, Any]:
    return next((one for one in field.get("anyOf", ()) if one.get("type") == "integer"), field)


def test_names_have_the_same_pattern_in_both() -> None:
    for field in ("queues", "kinds"):
        pattern = schema("spec", field)["items"]["pattern"]
        for name, good in (("a", True), ("convert_pdf", True), ("a" * 63, True), ("a" * 64, False), ("A", False)):
            assert bool(re.search(pattern, name)) == good
            assert _accepts({field: [name]}) == good, name


def test_what_the_operator_keeps_for_itself_the_crd_refuses_too() -> None:
    [rule] = schema("spec", "env")["items"]["x-kubernetes-validations"]
    assert set(re.findall(r"'([A-Z_]+)'", rule["rule"])) == set(MANAGED_ENV)
    annotations = schema("spec", "podOverrides", "annotations")["x-kubernetes-validations"][0]["rule"]
    assert set(re.findall(r"'([^']+)'", annotations)) == set(OWN_ANNOTATIONS)
    volume = schema("spec", "podOverrides", "volumes")["items"]["properties"]
    assert set(volume) == {"name", *VOLUME_SOURCES}
    assert schema("spec", "env")["items"]["properties"]["name"]["pattern"] == "^[-._a-zA-Z][-._a-zA-Z0-9]*$"
    assert "name" in EnvVar.model_fields


def test_unknown_fields_are_kept_only_where_kubernetes_has_its_own_types() -> None:
    kept = []

    def walk(node: Any, path: str) -> None:
        if isinstance(node, dict):
            if node.get("x-kubernetes-preserve-unknown-fields"):
                kept.append(path)
            for key, value in node.items():
                walk(value, f"{path}/{key}" if key not in ("properties", "items") else path)

    walk(schema("spec"), "")
    volumes = {f"/podOverrides/volumes/{source}" for source in VOLUME_SOURCES}
    assert set(kept) == volumes | {
        "/env/valueFrom",
        "/podOverrides/affinity",
        "/podOverrides/dnsConfig",
        "/podOverrides/hostAliases",
        "/podOverrides/imagePullSecrets",
        "/podOverrides/tolerations",
        "/podOverrides/topologySpreadConstraints",
        "/podOverrides/volumeMounts",
    }


def test_the_status_that_is_shown_is_in_the_schema() -> None:
    """A printer column whose path leads nowhere stays empty for ever."""
    version = crd()["spec"]["versions"][0]
    status = schema("status")["properties"]
    for column in version["additionalPrinterColumns"]:
        path = column["jsonPath"]
        if path.startswith(".status."):
            assert re.split(r"[.\[]", path)[2] in status, path
    assert version["subresources"]["scale"]["labelSelectorPath"] == ".status.selector"


def test_an_empty_spec_is_a_pool_with_defaults() -> None:
    spec = parse({})
    assert (spec.concurrency, spec.processes, spec.replicas, spec.slots) == (10, 1, 1, 10)
    assert (spec.autoscaling.source, spec.autoscaling.min_replicas, spec.autoscaling.max_replicas) == ("builtin", 1, 10)
    assert spec.disruption_budget == DisruptionBudget(max_unavailable=1)


def test_a_field_of_a_later_crd_is_left_alone() -> None:
    assert parse({"concurrency": 4, "later": True}).concurrency == 4


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"concurrency": 0}, r"spec\.concurrency: Input should be greater than or equal to 1"),
        ({"concurrency": "many"}, r"spec\.concurrency: "),
        ({"autoscaling": {"minReplicas": 5, "maxReplicas": 2}}, r"spec\.autoscaling: minReplicas must not be more"),
        ({"autoscaling": {"source": "magic"}}, r"spec\.autoscaling\.source: "),
        ({"queues": ["a,b"]}, r"spec\.queues\[0\]: "),
        ({"env": [{"name": "POD_UID", "value": "x"}]}, r"spec\.env\[0\]: POD_UID is set by the operator"),
        ({"disruptionBudget": {"maxUnavailable": "ten"}}, r"must be a number or a percentage such as 10%"),
        ({"disruptionBudget": None}, r"spec\.disruptionBudget: "),
        ({"disruptionBudget": {"maxUnavailable": -1}}, r"must not be negative"),
        ([], r"spec: "),
    ],
)
def test_a_bad_spec_is_explained_by_its_field(spec: Any, sentence: str) -> None:
    with pytest.raises(InvalidSpec, match=sentence):
        parse(spec)


def _accepts(spec: Any) -> bool:
    try:
        parse(spec)
    except InvalidSpec:
        return False
    return True

"""Writes the schemas of what the chart uses, as a running API server publishes them: `make api-schemas`."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cluster import Cluster
from support.control_plane import control_plane
from support.kubernetes_schemas import FILE

GROUPS = (
    "api/v1",
    "apis/admissionregistration.k8s.io/v1",
    "apis/apiextensions.k8s.io/v1",
    "apis/apiregistration.k8s.io/v1",
    "apis/apps/v1",
    "apis/autoscaling/v2",
    "apis/batch/v1",
    "apis/coordination.k8s.io/v1",
    "apis/networking.k8s.io/v1",
    "apis/policy/v1",
    "apis/rbac.authorization.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
    "apis/storage.k8s.io/v1",
)
_WORDS = ("description", "externalDocs", "x-kubernetes-group-version-kind", "x-kubernetes-action")
_NOT_STORED = {"Binding", "Eviction", "Scale", "Status", "TokenRequest", "WatchEvent", "DeleteOptions"}


def collect(cluster: Cluster) -> dict[str, Any]:
    """The kinds of these groups and everything that they refer to, without the prose."""
    kinds: dict[str, dict[str, str]] = {}
    schemas: dict[str, Any] = {}
    for group in GROUPS:
        found = json.loads(cluster.kubectl("get", "--raw", f"/openapi/v3/{group}"))["components"]["schemas"]
        version = group.removeprefix("apis/").removeprefix("api/")
        wanted = dict(_kinds(found, version))
        kinds[version] = wanted
        for name in _reached(found, wanted.values()):
            schemas[name] = _pruned(found[name])
    version = json.loads(cluster.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"]
    return {"version": version, "kinds": kinds, "schemas": dict(sorted(schemas.items()))}


def _kinds(found: dict[str, Any], version: str) -> Iterator[tuple[str, str]]:
    for name, schema in sorted(found.items()):
        for each in schema.get("x-kubernetes-group-version-kind", ()):
            own = "/".join(filter(None, (each["group"], each["version"]))) == version
            kind = each["kind"]
            if own and not kind.endswith("List") and kind not in _NOT_STORED:
                yield kind, name


def _reached(found: dict[str, Any], names: Any) -> list[str]:
    reached = list(names)
    for name in reached:  # grows while we look
        reached += [each for each in _references(found[name]) if each not in reached]
    return reached


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if isinstance(reference := schema.get("$ref"), str):
            yield reference.rpartition("/")[2]
        for each in schema.values():
            yield from _references(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from _references(each)


def _pruned(schema: Any) -> Any:
    """Without prose; a property that is called `description` stays."""
    if isinstance(schema, list):
        return [_pruned(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _pruned(value) for key, value in schema.items() if key not in _WORDS and key != "properties"}
    if "properties" in schema:
        kept["properties"] = {name: _pruned(value) for name, value in schema["properties"].items()}
    return kept


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="waybill-schemas-") as folder, control_plane(Path(folder)) as running:
        published = collect(running[1])
    FILE.parent.mkdir(parents=True, exist_ok=True)
    FILE.write_text(json.dumps(published, separators=(",", ":"), sort_keys=True) + "\n")
    count = sum(len(kinds) for kinds in published["kinds"].values())
    print(f"{FILE.name}: {count} kinds of Kubernetes {published['version']}, {FILE.stat().st_size // 1024} KB")


if __name__ == "__main__":
    try:
        main()
    except pytest.fail.Exception as missing:
        sys.exit(str(missing))

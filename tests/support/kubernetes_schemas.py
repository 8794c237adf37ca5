"""Checks objects against the schemas that an API server publishes, without an API server.

An unknown field is an error here. The real server drops one in silence unless it is asked to be strict, and a misspelt
field of a chart would then simply not work. `make api-schemas` writes the file with the schemas.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

Object = dict[str, Any]

FILE = Path(__file__).resolve().parents[1] / "chart" / "schemas" / "kubernetes.json"

_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
# Roles may be called `system:something`, and so may those who are bound to them.
_PATH_SEGMENT = re.compile(r"[^/%]+")
_LABEL_VALUE = re.compile(r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?")
_LABEL_KEY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_HOST_NAMES = frozenset({"Service", "Pod", "Deployment", "CronJob", "Job"})
"""Kinds whose names become (part of) a name in DNS or a label, which end at 63 characters."""


class KubernetesSchemas:
    """The kinds of one release of Kubernetes, and those that are added by their definitions."""

    def __init__(self, published: Object) -> None:
        self.version: str = published["version"]
        self._kinds: dict[tuple[str, str], str] = {
            (version, kind): name for version, kinds in published["kinds"].items() for kind, name in kinds.items()
        }
        self._schemas: dict[str, Object] = {name: _strict(each) for name, each in published["schemas"].items()}
        self._validators: dict[str, Draft202012Validator] = {}
        for (version, kind), spec in _OTHERS.items():
            self._add(version, kind, {"spec": spec}, required=["spec"])

    @property
    def kinds(self) -> set[tuple[str, str]]:
        """(apiVersion, kind) of everything that can be checked."""
        return set(self._kinds)

    def define(self, definition: Object) -> None:
        """Add the kind that a CustomResourceDefinition defines."""
        group, names = definition["spec"]["group"], definition["spec"]["names"]
        for version in definition["spec"]["versions"]:
            schema = version["schema"]["openAPIV3Schema"]
            properties = {
                name: _strict(_plain(each))
                for name, each in schema["properties"].items()
                if name not in ("apiVersion", "kind", "metadata")
            }
            self._add(f"{group}/{version['name']}", names["kind"], properties, schema.get("required", []))

    def problems(self, item: Object) -> list[str]:
        """What the API server would refuse or drop, each with the path to it. Empty if all is well."""
        version, kind = item.get("apiVersion"), item.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            return ["the object has no apiVersion or no kind"]
        name = self._kinds.get((version, kind))
        if name is None:
            return [f"{version} has no kind {kind} in Kubernetes {self.version}"]
        where = f"{kind} {item.get('metadata', {}).get('name', '(no name)')}"
        errors = sorted(self._validator(name).iter_errors(item), key=lambda error: list(map(str, error.absolute_path)))
        return [f"{where}: {problem}" for problem in (*map(_told, errors), *_metadata_problems(kind, item))]

    def _add(self, version: str, kind: str, properties: Object, required: list[str]) -> None:
        name = f"{version}.{kind}".replace("/", ".")
        head = {"apiVersion": {"const": version}, "kind": {"const": kind}, "metadata": {"$ref": f"#/$defs/{_META}"}}
        self._kinds[version, kind] = name
        self._schemas[name] = {
            "type": "object",
            "properties": {**head, **properties},
            "required": ["apiVersion", "kind", "metadata", *required],
            "additionalProperties": False,
        }
        self._validators.clear()

    def _validator(self, name: str) -> Draft202012Validator:
        if name not in self._validators:
            self._validators[name] = Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": self._schemas})
        return self._validators[name]


@cache
def kubernetes_schemas() -> KubernetesSchemas:
    """The schemas in the repository."""
    return KubernetesSchemas(json.loads(FILE.read_text()))


def _plain(schema: Any) -> Any:
    """A schema of a CustomResourceDefinition as the API server would publish it."""
    if not isinstance(schema, dict):
        return [_plain(each) for each in schema] if isinstance(schema, list) else schema
    plain = _mapped(_plain, {key: value for key, value in schema.items() if not key.startswith("x-kubernetes-")})
    if schema.get("x-kubernetes-int-or-string"):
        plain |= {"oneOf": [{"type": "integer"}, {"type": "string"}]}
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        plain |= {"additionalProperties": True}
    if schema.get("nullable"):
        return {"anyOf": [{"type": "null"}, plain]}
    return plain


def _strict(schema: Any) -> Any:
    """The schema as JSON Schema, without room for fields that nobody knows."""
    if not isinstance(schema, dict):
        return [_strict(each) for each in schema] if isinstance(schema, list) else schema
    strict = _mapped(
        _strict, {key: value for key, value in schema.items() if key not in ("default", "format", "example")}
    )
    if "$ref" in strict:
        strict["$ref"] = strict["$ref"].replace("#/components/schemas/", "#/$defs/")
    if "properties" in strict:
        strict.setdefault("additionalProperties", False)
    return strict


def _mapped(change: Callable[[Any], Any], schema: Object) -> Object:
    """The schema with its parts changed. A property may be called like a word of the schema language."""
    return {
        key: {name: change(each) for name, each in value.items()} if key == "properties" else change(value)
        for key, value in schema.items()
    }


def _told(error: ValidationError) -> str:
    """One line about an error; of alternatives, the nearest one that failed."""
    path = ".".join(map(str, error.absolute_path))
    return f"{path or 'the object'}: {error.message[:300]}"


def _metadata_problems(kind: str, item: Object) -> Iterator[str]:
    """What the schemas leave to code in the API server: how things may be called."""
    metadata = item.get("metadata")
    if not isinstance(metadata, dict):
        yield "metadata is missing"
        return
    name = metadata.get("name", metadata.get("generateName", ""))
    pattern = _PATH_SEGMENT if item["apiVersion"].startswith("rbac.") else _SUBDOMAIN
    longest = 63 if kind in _HOST_NAMES else 253
    if not isinstance(name, str) or not pattern.fullmatch(name.removesuffix("-") if "name" not in metadata else name):
        yield f"metadata.name: {name!r} is not a name"
    elif len(name) > longest:
        yield f"metadata.name: {name!r} has more than {longest} characters"
    for labels in _labels_of(item):
        for key, value in labels.items():
            if not _LABEL_KEY.fullmatch(key) or len(key.rpartition("/")[2]) > 63:
                yield f"{key!r} is not the name of a label"
            if not isinstance(value, str) or not _LABEL_VALUE.fullmatch(value) or len(value) > 63:
                yield f"the label {key} cannot have the value {value!r}"


def _labels_of(item: Any) -> Iterator[Object]:
    """The labels of the object and of the pods it makes."""
    if not isinstance(item, dict):
        return
    labels = (item.get("metadata") or {}).get("labels") if isinstance(item.get("metadata"), dict) else None
    if isinstance(labels, dict):
        yield labels
    spec = item.get("spec")
    if isinstance(spec, dict):
        for template in ("template", "jobTemplate"):
            yield from _labels_of(spec.get(template))


def _listed(**items: Object) -> Object:
    """A list that has at least one item."""
    return {"type": "array", "minItems": 1, "items": _having(**items)}


def _having(**properties: Object) -> Object:
    """An object that has these fields, and maybe others."""
    return {"type": "object", "properties": properties, "required": list(properties)}


_TEXT: Object = {"type": "string", "minLength": 1}
_TEXTS: Object = {"type": "array", "minItems": 1, "items": _TEXT}
_MAP_OF_TEXTS: Object = {"type": "object", "additionalProperties": {"type": "string"}}
_RULE: Object = {
    "oneOf": [_having(alert=_TEXT, expr=_TEXT), _having(record=_TEXT, expr=_TEXT)],
    "properties": {
        "alert": {},
        "record": {},
        "expr": {},
        "for": _TEXT,
        "keep_firing_for": _TEXT,
        "labels": _MAP_OF_TEXTS,
        "annotations": _MAP_OF_TEXTS,
    },
    "additionalProperties": False,
}
# What an API server does not know until others have installed it. These say what cannot be left out, not all there is.
_OTHERS: dict[tuple[str, str], Object] = {
    ("monitoring.coreos.com/v1", "ServiceMonitor"): _having(
        selector={"type": "object"}, endpoints={"type": "array", "minItems": 1, "items": _having(port=_TEXT)}
    ),
    ("monitoring.coreos.com/v1", "PodMonitor"): _having(
        selector={"type": "object"}, podMetricsEndpoints={"type": "array", "minItems": 1, "items": _having(port=_TEXT)}
    ),
    ("monitoring.coreos.com/v1", "PrometheusRule"): _having(
        groups=_listed(name=_TEXT, rules={"type": "array", "minItems": 1, "items": _RULE})
    ),
    ("keda.sh/v1alpha1", "ScaledObject"): _having(
        scaleTargetRef=_having(name=_TEXT), triggers=_listed(type=_TEXT, metadata=_MAP_OF_TEXTS)
    ),
    ("keda.sh/v1alpha1", "TriggerAuthentication"): {"type": "object", "minProperties": 1},
    ("cert-manager.io/v1", "Certificate"): _having(secretName=_TEXT, issuerRef=_having(name=_TEXT), dnsNames=_TEXTS),
    ("cert-manager.io/v1", "Issuer"): {"type": "object", "minProperties": 1, "maxProperties": 1},
    ("gateway.networking.k8s.io/v1", "HTTPRoute"): _having(
        parentRefs=_listed(name=_TEXT), rules=_listed(backendRefs=_listed(name=_TEXT, port={"type": "integer"}))
    ),
}

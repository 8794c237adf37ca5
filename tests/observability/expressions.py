"""Reads the expressions out of the alert rules and the dashboard."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yaml"
RULES_TEST = RULES.with_name("alerts_test.yaml")
DASHBOARD = ROOT / "deploy" / "grafana" / "waybill.json"

# Our metrics and those that Prometheus adds. No label of ours begins like that.
_SELECTOR = re.compile(r"\b(?:waybill[_:][\w:]+|up|ALERTS)\b(?:\{[^}]*\})?")

# What Grafana puts in their place: everything, over a short time.
_GRAFANA = {"$namespace": ".*", "$kind": ".*", "$__rate_interval": "1m"}


def rules() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def dashboard() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    return loaded


def panels() -> list[dict[str, Any]]:
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def dashboard_expressions() -> Iterator[str]:
    """What Grafana would ask Prometheus: panels, marks on the time axis, and the choices at the top."""
    found = [target["expr"] for panel in panels() for target in panel["targets"]]
    found += [mark["expr"] for mark in dashboard()["annotations"]["list"]]
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            selector = re.fullmatch(r"label_values\((.+), \w+\)", variable["definition"])
            assert selector is not None, variable
            found.append(selector[1])
    for expression in found:
        for placeholder, value in _GRAFANA.items():
            expression = expression.replace(placeholder, value)
        assert "$" not in expression, expression
        yield expression


def all_expressions() -> list[str]:
    return [*(rule["expr"] for rule in rules()), *dashboard_expressions()]


def selectors(expression: str) -> set[str]:
    """The series that an expression reads, each as an expression of its own."""
    return set(_SELECTOR.findall(expression))

"""The Grafana dashboard: its sections in order, what can be chosen at the top, and the marks on the time axis."""

from __future__ import annotations

import json

from waybill_cli.monitoring.job_sections import CONVERSIONS, QUEUE, WELL
from waybill_cli.monitoring.panels import DATASOURCE, Json, arrange, chosen
from waybill_cli.monitoring.service_sections import FLEET, GATEWAY, JANITOR

SECTIONS = (WELL, QUEUE, CONVERSIONS, GATEWAY, FLEET, JANITOR)


def dashboard_text() -> str:
    """The dashboard as JSON, as Grafana (10 and later) imports it."""
    return json.dumps(_dashboard(), indent=2, ensure_ascii=False) + "\n"


def _dashboard() -> Json:
    return {
        "title": "Waybill",
        "uid": "waybill",
        "description": "Is it well, since when, and what changed? Read it from top to bottom.",
        "tags": ["waybill"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,  # one crosshair on all plots
        "timezone": "browser",
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables()},
        "annotations": {"list": _marks()},
        "panels": arrange(SECTIONS),
    }


def _variables() -> list[Json]:
    return [
        {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "refresh": 1},
        # Where Waybill is not in Kubernetes its metrics have no such label, and "all" finds them.
        _choice("namespace", "Namespace", "label_values(waybill_build_info, namespace)"),
        _choice("kind", "Kind", 'label_values(waybill_queue_jobs{namespace=~"$namespace"}, kind)'),
    ]


def _choice(name: str, label: str, query: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"query": query, "refId": name},
        "definition": query,
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }


def _marks() -> list[Json]:
    return [
        _mark(
            "New versions",
            "blue",
            "count by (service, version) (waybill_build_info)"
            " unless count by (service, version) (waybill_build_info offset 5m)",
            "{{service}} {{version}}",
        ),
        _mark(
            "Open breakers", "orange", 'max by (dependency) (waybill_breaker_state{state="open"}) > 0', "{{dependency}}"
        ),
        _mark(
            "Pages",
            "red",
            'ALERTS{alertname=~"Waybill.*", alertstate="firing", severity="page"}',
            "{{alertname}}",
        ),
    ]


def _mark(name: str, colour: str, expression: str, title: str) -> Json:
    return {
        "name": name,
        "enable": True,
        "datasource": DATASOURCE,
        "iconColor": colour,
        "expr": chosen(expression),
        "titleFormat": title,
        "step": "60s",
    }

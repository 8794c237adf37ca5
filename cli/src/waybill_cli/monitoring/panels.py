"""The parts of a Grafana dashboard, as small values; `dashboard` puts them in order.

Grafana's own JSON repeats for each panel what is the same for all of them. Here a panel says what is special about it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DATASOURCE: Json = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH = 24
_SELECTOR = re.compile(r"\b(waybill_\w+|up|ALERTS)\b(\{?)")


@dataclass(frozen=True, slots=True)
class Query:
    expression: str
    legend: str = ""
    exemplars: bool = False
    """Whether to mark requests with a known trace. Only buckets of histograms have them."""


@dataclass(frozen=True, slots=True)
class Steps:
    """From which value on a panel is yellow or red. If `low_is_bad`, below which value."""

    yellow: float | None = None
    red: float | None = None
    low_is_bad: bool = False

    def as_json(self) -> list[Json]:
        if self.low_is_bad:
            steps: list[Json] = [{"color": "red", "value": None}]
            if self.yellow is not None:
                steps.append({"color": "yellow", "value": self.red})
            steps.append({"color": "green", "value": self.red if self.yellow is None else self.yellow})
            return steps
        bad = [("yellow", self.yellow), ("red", self.red)]
        return [
            {"color": "green", "value": None},
            *({"color": colour, "value": value} for colour, value in bad if value is not None),
        ]


NO_STEPS = Steps()


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel. `description` says what a person learns from it, and what to do."""

    title: str
    description: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    steps: Steps = NO_STEPS
    width: int = 8
    height: int = 8
    stacked: bool = False
    nothing: str = "no data"
    """What a panel says that has nothing to show."""
    defaults: Json = field(default_factory=dict)
    options: Json = field(default_factory=dict)

    def as_json(self, number: int, x: int, y: int) -> Json:
        return {
            "id": number,
            "type": self.kind,
            "title": self.title,
            "description": self.description,
            "datasource": DATASOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
            "targets": [_target(query, letter) for query, letter in zip(self.queries, "ABCDEFGH", strict=False)],
        }

    def _defaults(self) -> Json:
        shown: Json = {
            "unit": self.unit,
            "noValue": self.nothing,
            "color": {"mode": "thresholds" if self.kind == "stat" else "palette-classic"},
            "thresholds": {"mode": "absolute", "steps": self.steps.as_json()},
        }
        if self.kind == "timeseries":
            shown["min"] = 0
            shown["custom"] = {
                "drawStyle": "line",
                "lineWidth": 1,
                "fillOpacity": 30 if self.stacked else 8,
                "showPoints": "never",
                "spanNulls": False,
                "stacking": {"mode": "normal" if self.stacked else "none", "group": "A"},
                "thresholdsStyle": {"mode": "off" if self.steps == NO_STEPS else "line"},
            }
        return {**shown, **self.defaults}

    def _options(self) -> Json:
        shown: Json = {}
        if self.kind == "stat":
            reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
            shown = {"reduceOptions": reduce, "colorMode": "background_solid", "graphMode": "area", "textMode": "auto"}
        elif self.kind == "timeseries":
            shown = {
                "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }
        elif self.kind == "state-timeline":
            shown = {"showValue": "never", "mergeValues": True, "legend": {"showLegend": False}, "rowHeight": 0.8}
        return {**shown, **self.options}


@dataclass(frozen=True, slots=True)
class Section:
    """A row of the dashboard with its panels."""

    title: str
    panels: Sequence[Panel]


def arrange(sections: Sequence[Section]) -> list[Json]:
    """All panels, from left to right and from top to bottom, each section under its title."""
    placed: list[Json] = []
    y = 0
    for section in sections:
        placed.append(
            {
                "id": len(placed) + 1,
                "type": "row",
                "title": section.title,
                "collapsed": False,
                "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
                "panels": [],
            }
        )
        x, y, tallest = 0, y + 1, 0
        for panel in section.panels:
            if x + panel.width > _WIDTH:
                x, y, tallest = 0, y + tallest, 0
            placed.append(panel.as_json(len(placed) + 1, x, y))
            x, tallest = x + panel.width, max(tallest, panel.height)
        y += tallest
    return placed


def chosen(expression: str) -> str:
    """The expression, about the installation that was chosen at the top of the dashboard."""
    return _SELECTOR.sub(
        lambda found: f'{found[1]}{{namespace=~"$namespace"' + (", " if found[2] else "}"),
        " ".join(expression.split()),
    )


def words(words: dict[str, tuple[str, str]]) -> Json:
    """Shows values as words in colours."""
    options = {value: {"text": text, "color": colour} for value, (text, colour) in words.items()}
    return {"mappings": [{"type": "value", "options": options}], "custom": {"fillOpacity": 80, "lineWidth": 0}}


def _target(query: Query, letter: str) -> Json:
    return {
        "refId": letter,
        "datasource": DATASOURCE,
        "expr": chosen(query.expression),
        "legendFormat": query.legend or "__auto",
        "range": True,
        "instant": False,
        "exemplar": query.exemplars,
    }

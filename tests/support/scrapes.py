"""Reads metrics as Prometheus does, and answers questions about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_plain
from prometheus_client.samples import Sample

from support.patience import PATIENCE

OPENMETRICS = {"Accept": "application/openmetrics-text; version=1.0.0"}


@dataclass
class Scrape:
    """One answer of `/metrics`."""

    text: str
    families: dict[str, Metric] = field(default_factory=dict)

    @property
    def samples(self) -> list[Sample]:
        return [sample for family in self.families.values() for sample in family.samples]

    def find(self, name: str, **labels: str) -> list[Sample]:
        return [one for one in self.samples if one.name == name and labels.items() <= one.labels.items()]

    def value(self, name: str, **labels: str) -> float:
        """The sum of the series with this name and these labels. Fails if there is none."""
        found = self.find(name, **labels)
        assert found, f"no {name}{labels} in\n{self.text}"
        return sum(one.value for one in found)

    def label_values(self) -> set[str]:
        return {value for one in self.samples for value in one.labels.values()}


def read(text: str, *, openmetrics: bool = False) -> Scrape:
    parse: Any = parse_openmetrics if openmetrics else parse_plain
    found: Iterable[Metric] = parse(text)
    return Scrape(text, {family.name: family for family in found})


async def scrape(port: int, headers: Mapping[str, str] | None = None) -> Scrape:
    """Ask a service of this machine for its metrics."""
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        answer = await client.get(f"http://127.0.0.1:{port}/metrics", headers=headers)
    assert answer.status_code == 200, answer.text
    return read(answer.text, openmetrics="openmetrics" in answer.headers["content-type"])

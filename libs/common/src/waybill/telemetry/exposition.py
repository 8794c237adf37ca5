"""Turns the numbers of this process into the formats that Prometheus reads, with prometheus-client.

OpenMetrics carries exemplars, plain text does not. Where several processes answer together, each sends its samples as
JSON (`packed`), and every sample gets the label `process`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.registry import Collector
from prometheus_client.samples import Exemplar

from waybill.telemetry import instruments
from waybill.telemetry.metrics import CATALOGUE

PLAIN, OPENMETRICS = CONTENT_TYPE_PLAIN_0_0_4, CONTENT_TYPE_LATEST


class _Shown(Collector):
    def __init__(self, families: Iterable[Family]) -> None:
        self._families = families

    def collect(self) -> Iterable[Family]:
        return self._families


def own_families(service: str) -> list[Family]:
    """What this process has to say: the service's metrics, and what the operating system knows about the process."""
    families = [_family(metric) for metric in CATALOGUE if service in metric.shown_by]
    return [*families, *ProcessCollector(registry=CollectorRegistry()).collect()]


def written(families: Iterable[Family], *, openmetrics: bool) -> bytes:
    registry = CollectorRegistry()
    registry.register(_Shown(list(families)))
    write: Any = generate_openmetrics if openmetrics else generate_latest
    return cast("bytes", write(registry))


def packed(families: Iterable[Family]) -> bytes:
    """The same for our own supervisor."""
    return json.dumps([[*_head(each), [_plain(one) for one in each.samples]] for each in families]).encode()


def unpacked(data: bytes) -> list[Family]:
    """What `packed` wrote. ValueError if it is something else."""
    found = []
    try:
        for name, documentation, type_, unit, samples in json.loads(data):
            family = Family(name, documentation, type_, unit)
            for sample, labels, value, exemplar in samples:
                family.add_sample(sample, labels, value, None, Exemplar(*exemplar) if exemplar else None)
            found.append(family)
    except (TypeError, KeyError) as error:
        raise ValueError("these are not samples") from error
    return found


def together(answers: Iterable[tuple[str, Sequence[Family]]]) -> list[Family]:
    """The families of several processes as one, with the label `process`."""
    merged: dict[str, Family] = {}
    for process, families in answers:
        for family in families:
            known = merged.get(family.name)
            if known is None:
                known = merged[family.name] = Family(family.name, family.documentation, family.type, family.unit)
            known.samples.extend(one._replace(labels={**one.labels, "process": process}) for one in family.samples)
    return list(merged.values())


def _head(family: Family) -> tuple[str, str, str, str]:
    return family.name, family.documentation, family.type, family.unit


def _plain(sample: Any) -> list[Any]:
    exemplar = sample.exemplar
    return [sample.name, sample.labels, sample.value, list(exemplar) if exemplar else None]


def _family(metric: instruments.Metric[Any]) -> Family:
    name = metric.name.removesuffix("_total") if metric.type == "counter" else metric.name
    family = Family(name, metric.meaning, metric.type)
    for values, series in metric.series():
        # An empty label is a missing one to Prometheus, and shorter not written.
        labels = {label: value for label, value in zip(metric.label_names, values, strict=True) if value}
        if isinstance(series, instruments.Distribution):
            _add_distribution(family, labels, series)
        else:
            family.add_sample(metric.name, labels, series.value)
    return family


def _add_distribution(family: Family, labels: dict[str, str], series: instruments.Distribution) -> None:
    counts, total, reached = list(series.counts), series.sum, 0
    for where, bound in enumerate([*(str(float(bound)) for bound in series.bounds), "+Inf"]):
        reached += counts[where]
        seen = series.exemplars.get(where)
        exemplar = Exemplar({"trace_id": seen.trace_id}, seen.value, seen.at) if seen is not None else None
        family.add_sample(f"{family.name}_bucket", {**labels, "le": bound}, reached, None, exemplar)
    family.add_sample(f"{family.name}_count", labels, reached)
    family.add_sample(f"{family.name}_sum", labels, total)

"""docs/metrics.md lists exactly the metrics that the code has, with their types, labels and services."""

from __future__ import annotations

import re
from pathlib import Path

from waybill.telemetry.metrics import CATALOGUE

PAGE = Path(__file__).parents[3] / "docs/metrics.md"
_ROW = re.compile(r"^\| `(waybill_\w+)` \| (\w+) \| ([^|]*) \| ([^|]*) \| (.+) \|$", re.MULTILINE)


def test_the_page_lists_what_the_code_has_and_nothing_else() -> None:
    rows = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), {one.strip() for one in shown.split(",")})
        for name, kind, labels, shown, _ in _ROW.findall(PAGE.read_text())
    }
    code = {
        metric.name: (metric.type, metric.label_names, set(metric.shown_by) - {"supervisor"}) for metric in CATALOGUE
    }
    assert rows == code


def test_every_name_says_what_it_is() -> None:
    for metric in CATALOGUE:
        assert (metric.type == "counter") == metric.name.endswith("_total"), metric.name
        assert metric.type != "histogram" or metric.name.endswith("_seconds"), metric.name
        assert metric.meaning.endswith("."), metric.name
        assert {"job_id", "owner", "path", "key"}.isdisjoint(metric.label_names), metric.name


def test_queries_on_the_page_name_metrics_that_exist() -> None:
    named = set(re.findall(r"waybill_[a-z_]+", PAGE.read_text()))
    known = {metric.name for metric in CATALOGUE}
    bare = {
        name.removesuffix(end) for name in named - known for end in ("_bucket", "_count", "_sum") if name.endswith(end)
    }
    assert {name for name in named - known if not name.endswith(("_bucket", "_count", "_sum"))} == set()
    assert bare <= known

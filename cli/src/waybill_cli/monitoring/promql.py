"""Expressions that several panels have in common."""

from __future__ import annotations

from waybill_cli.monitoring.panels import Query

IN_TIME = 'le=~"300(\\\\.0)?"'


def quantile(share: float, metric: str, *, by: str = "", where: str = "") -> str:
    """The value below which this share of a histogram's observations lies."""
    labels = f"le, {by}" if by else "le"
    selector = f"{metric}_bucket{{{where}}}" if where else f"{metric}_bucket"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({selector}[$__rate_interval])))"


def quantiles(metric: str, *, by: str = "", where: str = "") -> list[Query]:
    """The usual and the slow case of a histogram."""
    named = f"{{{{{by}}}}} " if by else ""
    return [
        Query(quantile(0.5, metric, by=by, where=where), f"{named}p50"),
        Query(quantile(0.95, metric, by=by, where=where), f"{named}p95", exemplars=True),
    ]


def rate(metric: str, *, by: str = "", where: str = "") -> str:
    """How often it happens in a second, by these labels; without labels, all together."""
    selector = f"{metric}{{{where}}}" if where else metric
    return f"{_sum(by)} (rate({selector}[$__rate_interval]))"


def _sum(labels: str) -> str:
    return f"sum by ({labels})" if labels else "sum"

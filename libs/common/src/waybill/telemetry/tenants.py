"""Which tenants have series of their own: none, unless an operator allows some (`WAYBILL_METRICS_TENANTS`).

Every tenant multiplies the series that Prometheus keeps, and their number has no end. So the first ones that a process
meets get a label, and all others share one.
"""

from __future__ import annotations

from waybill.telemetry.instruments import REST

TENANT = "tenant"
"""The label. Its value is "" while tenants have none, which is how Prometheus writes that a label is missing."""

_allowed = 0
_known: set[str] = set()


def allow(number: int) -> None:
    """Let so many tenants have series of their own."""
    global _allowed
    _allowed = number
    _known.clear()


def tenant_label(tenant: str) -> str:
    if not _allowed:
        return ""
    if tenant not in _known:
        if len(_known) >= _allowed:
            return REST
        _known.add(tenant)
    return tenant

"""`/metrics` of a service, on a port of its own: never on the public one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import structlog

from waybill.config.metrics_settings import MetricsSettings
from waybill.telemetry import metrics, tenants
from waybill.telemetry.small_server import Headers, Respond, SmallAnswer, SmallServer, listen

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

log: structlog.stdlib.BoundLogger = structlog.get_logger()


class MetricsPage:
    """What `/metrics` answers for a service that is one process."""

    def __init__(self, service: str) -> None:
        self._service = service

    async def __call__(self, headers: Headers) -> SmallAnswer:
        from waybill.telemetry import exposition  # prometheus-client is imported when somebody looks

        return page(exposition.own_families(self._service), headers)


def page(families: Sequence[Family], headers: Headers) -> SmallAnswer:
    """The families in the format that the client asks for."""
    from waybill.telemetry import exposition

    openmetrics = _wants_openmetrics(headers.get("accept", ""))
    body = exposition.written(families, openmetrics=openmetrics)
    return SmallAnswer(body, exposition.OPENMETRICS if openmetrics else exposition.PLAIN, headers={"Vary": "Accept"})


@contextlib.contextmanager
def serving(
    settings: MetricsSettings, service: str, port: int, routes: Mapping[str, Respond] | None = None
) -> Iterator[None]:
    """Serve `/metrics`, and what else is given, while the block runs. With port 0, or a port that is taken, do not.

    A process without numbers does its work all the same, so a taken port is no reason to stop.
    """
    tenants.allow(settings.metrics_tenants)
    metrics.begin(service)
    if not port:
        yield
        return
    setting = f"WAYBILL_{service.upper()}_METRICS_PORT"
    try:
        listener = listen(settings.metrics_host, port)
    except OSError as error:
        log.error(
            "metrics_not_served",
            host=settings.metrics_host,
            port=port,
            error=error.strerror,
            hint=f"choose another port with {setting}, or none with 0",
        )
        yield
        return
    server = SmallServer({"/metrics": MetricsPage(service), **(routes or {})}, listener, "metrics")
    server.start()
    log.info("metrics_served", host=settings.metrics_host, port=port)
    try:
        yield
    finally:
        server.stop()


def _wants_openmetrics(accept: str) -> bool:
    for one in accept.split(","):
        media, *parameters = (part.strip().lower() for part in one.split(";"))
        if media == "application/openmetrics-text":
            return not any(parameter.replace(" ", "") in ("q=0", "q=0.0") for parameter in parameters)
    return False

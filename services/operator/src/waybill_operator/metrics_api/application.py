"""The routes of `external.metrics.k8s.io/v1beta1`.

Discovery is answered from memory, to everybody: the API server drops an API whose discovery fails, and namespaces
cannot be deleted then. It says only that there is a metric. The metric itself is for the API server, on behalf of whom
it has authorised.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from http import HTTPStatus
from typing import Any, Protocol

import structlog
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from waybill import http
from waybill.cluster import Informer
from waybill.http.request_metrics import RequestMetrics
from waybill_operator.metrics_api.connection import certificate_of
from waybill_operator.metrics_api.label_selector import BadSelector, LabelSelector
from waybill_operator.metrics_api.proxy_trust import ProxyTrust
from waybill_operator.pools.figures import PoolFigures
from waybill_operator.pools.objects import METRIC
from waybill_operator.pools.pool import WorkerPool
from waybill_operator.pools.spec import InvalidSpec, parse

log: structlog.stdlib.BoundLogger = structlog.get_logger()

GROUP, VERSION = "external.metrics.k8s.io", "v1beta1"
_GROUP_VERSION = f"{GROUP}/{VERSION}"
_NEW_POOL = 3.0
"""Seconds that an answer may wait for the figures of a pool that has just been made."""

_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": _GROUP_VERSION,
    "resources": [
        {
            "name": METRIC,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
    ],
}
_VERSION = {"groupVersion": _GROUP_VERSION, "version": VERSION}
_GROUP = {"name": GROUP, "versions": [_VERSION], "preferredVersion": _VERSION}
_DISCOVERY: Mapping[str, Mapping[str, Any]] = {
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_GROUP]},
    f"/apis/{GROUP}": {"kind": "APIGroup", "apiVersion": "v1", **_GROUP},
    f"/apis/{_GROUP_VERSION}": _RESOURCES,
}


class PoolFiguresSource(Protocol):
    @property
    def trouble(self) -> str | None: ...

    def of(self, pool: str) -> PoolFigures | None: ...

    async def wait_for(self, pools: list[str], within: float) -> None: ...


class Trust(Protocol):
    @property
    def current(self) -> ProxyTrust | None: ...

    @property
    def trouble(self) -> str | None: ...


class RefusedRequest(Exception):
    """A request that is answered with a Status object."""

    def __init__(self, code: int, reason: str, message: str, *, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


class MetricsApplication:
    def __init__(
        self, figures: PoolFiguresSource, pools: Informer, trust: Trust, *, namespace: str, prefix: str
    ) -> None:
        self._figures = figures
        self._pools = pools
        self._trust = trust
        self._namespace = namespace
        self._prefix = prefix

    def asgi(self, *, access_log: bool = True) -> Starlette:
        metric = f"/apis/{_GROUP_VERSION}/namespaces/{{namespace}}/{{metric}}"
        app = Starlette(
            routes=[
                *(Route(path, _discovery(body)) for path, body in _DISCOVERY.items()),
                Route(metric, self._metric),
            ],
            exception_handlers={RefusedRequest: _refused, HTTPException: _http_error, Exception: _bug},
        )
        app.add_middleware(http.SafeHeaders)
        app.add_middleware(RequestMetrics, service="operator")
        app.add_middleware(http.AccessLog, written=access_log, quiet=(*_DISCOVERY, metric))
        return app

    async def _metric(self, request: Request) -> Response:
        self._know(request)
        namespace, metric = request.path_params["namespace"], request.path_params["metric"]
        if metric != METRIC:
            raise RefusedRequest(404, "NotFound", f"There is no metric {metric[:100]}; this API has {METRIC}.")
        if namespace != self._namespace:
            raise RefusedRequest(
                404, "NotFound", f"This operator keeps the pools of {self._namespace}, none of {namespace[:63]}."
            )
        try:
            selector = LabelSelector.parse(request.query_params.get("labelSelector", ""))
        except BadSelector as error:
            raise RefusedRequest(400, "BadRequest", str(error)) from error
        names = self._selected(selector)
        await self._figures.wait_for(names, _NEW_POOL)
        if (trouble := self._figures.trouble) is not None:
            raise RefusedRequest(
                503, "ServiceUnavailable", f"Nobody knows how many workers are wanted: {trouble}", retry_after=5
            )
        return JSONResponse(
            {
                "kind": "ExternalMetricValueList",
                "apiVersion": _GROUP_VERSION,
                "metadata": {},
                "items": [self._item(name) for name in names],
            }
        )

    def _know(self, request: Request) -> str:
        """The user for whom the API server asks."""
        trust = self._trust.current
        if trust is None:
            raise RefusedRequest(
                503, "ServiceUnavailable", f"Nobody can be believed yet: {self._trust.trouble}", retry_after=5
            )
        user = trust.user(certificate_of(request.scope), _first_of_each(request.headers))
        if user is None:
            raise RefusedRequest(
                401, "Unauthorized", "Only the API server may ask, with the certificate of its front proxy."
            )
        return user

    def _selected(self, selector: LabelSelector) -> list[str]:
        """The pools that the selector matches; there must be one."""
        if not self._pools.listed:
            raise RefusedRequest(503, "ServiceUnavailable", "The worker pools have not been listed yet.", retry_after=5)
        known = sorted(name for name, body in self._pools.objects.items() if WorkerPool(body).is_of(self._prefix))
        found = [name for name in known if selector.matches({"pool": name})]
        if not found:
            raise RefusedRequest(
                404,
                "NotFound",
                "No worker pool matches the label selector."
                f" The pools of {self._namespace} are: {', '.join(known[:20]) or 'none'}.",
            )
        invalid = [name for name in found if not self._is_valid(name)]
        if invalid:
            raise RefusedRequest(
                422, "Invalid", f"The spec of the worker pool {invalid[0]} is not valid. Its status says why."
            )
        return found

    def _is_valid(self, name: str) -> bool:
        try:
            parse(WorkerPool(self._pools.objects[name]).spec)
        except InvalidSpec:
            return False
        return True

    def _item(self, name: str) -> Mapping[str, Any]:
        figures = self._figures.of(name)
        if figures is None:
            raise RefusedRequest(
                503,
                "ServiceUnavailable",
                f"The jobs of the worker pool {name} have not been counted yet.",
                retry_after=5,
            )
        return {
            "metricName": METRIC,
            "metricLabels": {"pool": name},
            "timestamp": figures.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "value": str(figures.wanted),
        }


def _discovery(body: Mapping[str, Any]) -> Any:
    async def answer(_request: Request) -> Response:
        return JSONResponse(body)

    return answer


def _first_of_each(headers: Headers) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for name, value in headers.items():
        found.setdefault(name, value)
    return found


def _status(code: int, reason: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    body = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }
    return JSONResponse(body, status_code=code, headers=headers)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedRequest)  # noqa: S101 - for the type checker
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after is not None else None
    return _status(error.code, error.reason, error.message, headers)


async def _http_error(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - for the type checker
    reason = HTTPStatus(error.status_code).phrase.replace(" ", "")
    message = "This API has nothing there." if error.status_code == 404 else error.detail
    return _status(error.status_code, reason, message, error.headers)


async def _bug(_request: Request, error: Exception) -> Response:
    log.error("metrics_api_failed", exc_info=error)
    return _status(500, "InternalError", "The operator failed. Its log says why.")

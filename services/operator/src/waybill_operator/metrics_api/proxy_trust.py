"""Whom the metrics API believes: the API server, which has checked the user and says who it is.

It shows a client certificate that is signed by the front proxy's authority, and puts the user into headers. Everybody
else could write such headers too, so they count only together with that certificate. The authority, the names that its
certificates may have and the names of the headers are in a ConfigMap that the API server itself keeps.
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Never

import structlog

from waybill.cluster import ClusterApi, Informer, Object
from waybill.cluster.resources import CONFIG_MAPS

log: structlog.stdlib.BoundLogger = structlog.get_logger()

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"

Certificate = Mapping[str, Any]
"""As `ssl` describes the certificate of a peer that it has verified."""


@dataclass(frozen=True, slots=True)
class ProxyTrust:
    authority: str
    """Certificates as PEM: whoever they sign may be the front proxy."""
    allowed_names: frozenset[str]
    """The common names that its certificate may have; empty for any."""
    user_headers: tuple[str, ...]
    """The headers that name the user, in lower case; the first one that is there counts."""

    @classmethod
    def parse(cls, data: Mapping[str, str]) -> ProxyTrust:
        """From the ConfigMap's data. ValueError if it is not as it should be."""
        authority = data.get("requestheader-client-ca-file", "")
        # Loading it tells whether these are certificates.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=authority)
        headers = _names(data, "requestheader-username-headers") or ["X-Remote-User"]
        return cls(
            authority,
            frozenset(_names(data, "requestheader-allowed-names")),
            tuple(header.lower() for header in headers),
        )

    def user(self, certificate: Certificate | None, headers: Mapping[str, str]) -> str | None:
        """Who asks, if the API server says so; None for everybody else.

        The certificate must have been verified against `authority`.
        """
        if not certificate:
            return None
        if self.allowed_names and not self.allowed_names & set(_common_names(certificate)):
            return None
        return next((headers[name] for name in self.user_headers if headers.get(name)), None)


class TrustSource:
    """The newest trust that the ConfigMap says."""

    def __init__(self, api: ClusterApi) -> None:
        self._informer = Informer(api, CONFIG_MAPS, NAMESPACE, fields=f"metadata.name={NAME}")
        self._informer.on_change(self._read)
        self._listeners: list[Callable[[], None]] = []
        self.current: ProxyTrust | None = None

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    @property
    def trouble(self) -> str | None:
        """Why nobody can be believed; None if the API server can."""
        if self.current is not None:
            return None
        if self._informer.trouble is not None:
            return f"the ConfigMap {NAMESPACE}/{NAME} cannot be read: {self._informer.trouble.message}"
        if self._informer.listed:
            return f"the ConfigMap {NAMESPACE}/{NAME} has no certificate of the front proxy"
        return f"the ConfigMap {NAMESPACE}/{NAME} has not been read yet"

    async def run(self) -> Never:
        await self._informer.run()

    def _read(self, _before: Object | None, after: Object | None) -> None:
        if after is None:
            return  # it is being replaced; what it said is true until then
        try:
            found = ProxyTrust.parse(after.get("data") or {})
        except (ValueError, ssl.SSLError) as error:
            log.error("front_proxy_not_known", config_map=f"{NAMESPACE}/{NAME}", error=str(error))
            return
        if found == self.current:
            return
        self.current = found
        for listener in self._listeners:
            listener()


def _names(data: Mapping[str, str], key: str) -> list[str]:
    found = json.loads(data.get(key) or "[]")
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError(f"{key} is not a list of names")
    return found


def _common_names(certificate: Certificate) -> list[str]:
    names = []
    for part in certificate.get("subject", ()):
        with contextlib.suppress(ValueError):
            names += [value for name, value in part if name == "commonName"]
    return names

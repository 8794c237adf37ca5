"""Where the services listen, and whether they can: a taken port stops the start before anything runs."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from waybill.config import ProcessSettings
from waybill.config.sources import variable


class PortError(Exception):
    """A port cannot be used; the message names the setting to change."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service listens, and the variable that sets its port."""

    host: str
    port: int
    variable: str

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def check(self) -> None:
        """Raise unless a service could listen here now."""
        try:
            found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        except socket.gaierror as error:
            raise PortError(f"The address {self.host!r} is not known here ({error.strerror}).") from error
        for family, kind, protocol, _, address in found:  # a name can be several addresses, and a service needs all
            with socket.socket(family, kind, protocol) as probe:
                # As the services do: connections of a predecessor that are still closing are no obstacle.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                try:
                    probe.bind(address)
                except OSError as error:
                    raise PortError(self._refusal(error)) from error

    def _refusal(self, error: OSError) -> str:
        if error.errno == errno.EADDRINUSE:
            other = self.port + 10 if self.port < 65525 else self.port - 10
            return (
                f"Port {self.port} on {self.host} is taken. Stop the program that uses it, or choose another port: "
                f"{self.variable}={other}"
            )
        reason = os.strerror(error.errno or 0)
        return f"Port {self.port} on {self.host} cannot be used ({reason}). Choose another port with {self.variable}."


def addresses(loaded: Iterable[ProcessSettings]) -> dict[str, Address]:
    """Every address in the settings, by service: the fields `api_host` and `api_port` are the address of `api`."""
    found = {}
    for settings in loaded:
        for field in type(settings).model_fields:
            name = field.removesuffix("_port")
            if name != field and (host := getattr(settings, f"{name}_host", None)):
                found[name] = Address(host, getattr(settings, field), variable(field))
    return found


def metrics_addresses(loaded: Iterable[ProcessSettings]) -> dict[str, Address]:
    """Where each service serves its metrics: the field `api_metrics_port`, on the `metrics_host`; 0 means nowhere."""
    found = {}
    for settings in loaded:
        for field in type(settings).model_fields:
            name = field.removesuffix("_metrics_port")
            if name != field and (port := getattr(settings, field)):
                found[name] = Address(getattr(settings, "metrics_host", "127.0.0.1"), port, variable(field))
    return found


def check_all(found: Mapping[str, Address]) -> None:
    """Raise unless every service could listen at its address now."""
    for name, address in found.items():
        twin = next((other for other, each in found.items() if other < name and each.port == address.port), None)
        if twin is not None:
            raise PortError(
                f"Port {address.port} is set for both {twin} and {name}. Choose another port with {address.variable} "
                f"or {found[twin].variable}."
            )
        address.check()

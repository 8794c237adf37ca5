"""Looks at the ports before anything starts: a taken one is a sentence now, not a stack trace later."""

from __future__ import annotations

import errno
import os
import socket


class PortError(Exception):
    """A port cannot be used; the message says which setting to change."""


def check_port(host: str, port: int, setting: str) -> None:
    """Raise unless a service could listen on the port at this moment."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except socket.gaierror as error:
        raise PortError(f"The address {host!r} is not known here ({error.strerror}).") from error
    with socket.socket(family, kind, protocol) as probe:
        # As the services do: connections of a predecessor that still fade away are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise PortError(
                    f"Port {port} on {host} is taken. Stop the program that uses it, or choose another port: "
                    f"{setting}={port + 10 if port < 65525 else port - 10}"
                ) from error
            reason = os.strerror(error.errno or 0)
            raise PortError(
                f"Port {port} on {host} cannot be used ({reason}). Choose another port with {setting}."
            ) from error

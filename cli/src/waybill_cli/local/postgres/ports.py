"""The port of the embedded server: a free one, from a range that nobody else takes by chance."""

from __future__ import annotations

import contextlib
import random
import socket

from waybill_cli.local.postgres.errors import PostgresError

# These are below the ports that Linux and macOS use for outgoing connections. Otherwise a client that keeps trying to
# reach a stopped server would eventually get that very port and connect to itself.
_PORTS = range(20000, 32000)


def free_port() -> int:
    for port in random.sample(_PORTS, 200):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise PostgresError("No port from 20000 to 32000 is free on 127.0.0.1.")

"""How a process tells whoever started it that it is ready: systemd's `sd_notify` convention.

`waybill up` and systemd listen; in a cluster nobody does, and the probes ask over HTTP instead.
"""

from __future__ import annotations

import os
import socket


def notify_ready() -> None:
    """Send `READY=1` to the Unix datagram socket named in `NOTIFY_SOCKET`; without one, do nothing."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    if address.startswith("@"):  # Linux's abstract namespace
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        try:
            notices.connect(address)
            notices.send(b"READY=1")
        except OSError:
            # Whoever listened is gone. That is its problem; a service works without an audience.
            return

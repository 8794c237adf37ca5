"""Tells the parent process that this one is ready, with systemd's `sd_notify` protocol.

`waybill up` and systemd listen for it. In a cluster nobody does; there, probes use HTTP.
"""

from __future__ import annotations

import os
import socket


def notify_ready() -> None:
    """Send `READY=1` to the Unix datagram socket in `NOTIFY_SOCKET`. Without that variable, do nothing."""
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
            # The listener is gone. The service works without it.
            return

"""The messages between the service and a parser: JSON objects, each preceded by its length, over one socket.

Documents and answers are not sent here. They are files, so that neither side holds them in memory.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Mapping
from typing import Any

LENGTH = struct.Struct("!I")
LONGEST = 1024 * 1024
"""Bytes. Our own messages are never longer."""


def pack(message: Mapping[str, Any]) -> bytes:
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > LONGEST:
        raise ValueError(f"a message of {len(body)} bytes is too long")
    return LENGTH.pack(len(body)) + body


def unpack(body: bytes) -> dict[str, Any]:
    message = json.loads(body)
    if not isinstance(message, dict):
        raise ValueError("a message is a JSON object")
    return message


def length_of(head: bytes) -> int:
    (length,) = LENGTH.unpack(head)
    if length > LONGEST:
        raise ValueError(f"a message of {length} bytes is too long")
    return int(length)


def receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next message, or None if the other side is gone. It blocks, because a parser has nothing else to do."""
    head = _exactly(channel, LENGTH.size)
    body = None if head is None else _exactly(channel, length_of(head))
    return None if body is None else unpack(body)


def _exactly(channel: socket.socket, size: int) -> bytes | None:
    received = b""
    while len(received) < size:
        chunk = channel.recv(size - len(received))
        if not chunk:
            return None
        received += chunk
    return received

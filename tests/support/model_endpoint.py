"""An OpenAI-compatible endpoint as its protocol describes it, and in every state of trouble that the protocol knows.

It answers from a script, one step for each request; the last step answers everything that comes after.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.sick_gateway import Answer, SickGateway, answering, breaking_off, sick_gateway, stalling

JSON = {"Content-Type": "application/json"}
KEY = "sk-test-4f9d2c81b7"


class Endpoint:
    """The base URL of the endpoint, and what it was asked."""

    def __init__(self, server: SickGateway) -> None:
        self._server = server
        self.url = f"{server.url}/v1"

    @property
    def asked(self) -> list[dict[str, Any]]:
        """The bodies of the requests."""
        return [json.loads(body) for _, body in self._server.requests]

    @property
    def headers(self) -> list[dict[str, str]]:
        return [headers for headers, _ in self._server.requests]

    def documents(self) -> list[str]:
        """The texts that it was asked about."""
        return [request["messages"][1]["content"] for request in self.asked]


@asynccontextmanager
async def model_endpoint(*script: Answer) -> AsyncIterator[Endpoint]:
    left = list(script)

    async def next_step(writer: asyncio.StreamWriter) -> None:
        step = left.pop(0) if len(left) > 1 else left[0]
        await step(writer)

    async with sick_gateway(next_step) as server:
        yield Endpoint(server)


def completion(content: Any, *, finish: str | None = "stop", **members: Any) -> dict[str, Any]:
    """A chat completion with this content."""
    message = {"role": "assistant", "content": content, **members.pop("message", {})}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "tiny-1-2026",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30, "total_tokens": 150},
        **members,
    }


def says(content: Any, **members: Any) -> Answer:
    """Answer with a completion. What is no text is written as JSON."""
    text = content if isinstance(content, str) or content is None else json.dumps(content)
    return sends(completion(text, **members))


def sends(body: Any, **headers: str) -> Answer:
    """Answer 200 with this body."""
    written = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answering(200, written, {**JSON, **_header_names(headers)})


def refuses(
    status: int, message: str = "", *, code: str | None = None, param: str | None = None, **headers: str
) -> Answer:
    """Answer with an error, as endpoints word it."""
    error = {"message": message, "type": "some_error", "code": code, "param": param}
    return answering(status, json.dumps({"error": error}).encode(), {**JSON, **_header_names(headers)})


async def resetting(writer: asyncio.StreamWriter) -> None:
    """Reset the connection instead of answering."""
    writer.transport.abort()


async def dripping(writer: asyncio.StreamWriter) -> None:
    """Answer one byte at a time, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"1\r\n \r\n")
        await writer.drain()
        await asyncio.sleep(0.02)


async def flooding(writer: asyncio.StreamWriter) -> None:
    """Answer with a body that does not end."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
        await writer.drain()


async def streaming(writer: asyncio.StreamWriter) -> None:
    """Answer with server-sent events, although nobody asked for a stream."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    event = b'data: {"choices":[{"delta":{"content":"{"}}]}\n\n'
    writer.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
    await writer.drain()
    await asyncio.sleep(3600)


def _header_names(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


__all__ = [
    "JSON",
    "KEY",
    "Endpoint",
    "answering",
    "breaking_off",
    "completion",
    "dripping",
    "flooding",
    "model_endpoint",
    "refuses",
    "resetting",
    "says",
    "sends",
    "stalling",
    "streaming",
]

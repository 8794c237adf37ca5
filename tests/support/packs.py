"""Sends ZIPs and packs to a gateway as our services do, and reads the packs that it answers with."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from support.gateway import Gateway
from waybill.files.packs import MEDIA_TYPE, Frame, PackReader, end_frame, frame
from waybill.http.proofs import ask

SECRET = "s" * 40
MOST = 2**31


def unpack(
    gateway: Gateway, archive: bytes, *, headers: Mapping[str, str] | None = None, **fields: str
) -> httpx.Response:
    """`POST /unpack`, as a service that knows the secret."""
    _, proof = ask(SECRET.encode(), "POST", "/unpack")
    files = {"file": ("a.zip", archive, "application/zip")}
    return gateway.client.post("/unpack", files=files, data=fields, headers={**proof, **(headers or {})})


def extract(
    gateway: Gateway, documents: Iterable[tuple[str, bytes]] | bytes, *, headers: Mapping[str, str] | None = None
) -> httpx.Response:
    """`POST /extract` with documents of these types, or with any body."""
    body = documents if isinstance(documents, bytes) else pack_of(documents)
    _, proof = ask(SECRET.encode(), "POST", "/extract")
    return gateway.client.post(
        "/extract", content=body, headers={"Content-Type": MEDIA_TYPE, **proof, **(headers or {})}
    )


def pack_of(documents: Iterable[tuple[str, bytes]]) -> bytes:
    return (
        b"".join(frame({"no": no, "type": kind}, content) for no, (kind, content) in enumerate(documents)) + end_frame()
    )


def frames_of(answer: httpx.Response) -> tuple[list[Frame], dict[str, Any]]:
    """The frames of an answer, and its end."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == MEDIA_TYPE
    *found, (end, _) = PackReader(io.BytesIO(answer.content), most_bytes=MOST)
    return found, end

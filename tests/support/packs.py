"""Sends ZIPs and packs to a gateway as our services do, and reads the packs that it answers with."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
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


def zipped(*members: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A ZIP as usual programs write it."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name) if name.endswith("/") else name, content)
    return buffer.getvalue()


def raw_member(name: bytes, content: bytes, *, method: int = 0, flags: int = 0) -> bytes:
    """A member with its own header; `content` is already packed by the method."""
    head = struct.pack(
        "<4s5H3L2H",
        b"PK\x03\x04",
        20,
        flags,
        method,
        0,
        0,
        zlib.crc32(content),
        len(content),
        len(content),
        len(name),
        0,
    )
    return head + name + content


def raw_entry(
    name: bytes,
    offset: int,
    packed: int,
    size: int,
    crc: int,
    *,
    method: int = 0,
    flags: int = 0,
    attributes: int = 0,
    extra: bytes = b"",
) -> bytes:
    """What the list of a ZIP says about a member, true or not."""
    return (
        struct.pack(
            "<4s4B4H3L5H2L",
            *(b"PK\x01\x02", 20, 3, 20, 0, flags, method, 0, 0, crc, packed, size, len(name), len(extra), 0, 0, 0),
            *(attributes, offset),
        )
        + name
        + extra
    )


def raw_archive(members: bytes, entries: Iterable[bytes], *, count: int | None = None, comment: bytes = b"") -> bytes:
    """A ZIP of members and of a list that need not fit them."""
    listed = list(entries)
    directory = b"".join(listed)
    number = min(len(listed) if count is None else count, 0xFFFF)
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, number, number, len(directory), len(members), len(comment))
    return members + directory + end + comment

"""`POST /extract`: a pack of documents becomes a pack of their JSON, as `POST /process` makes it of each one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from waybill.files.packs import MEDIA_TYPE
from waybill.telemetry import spans
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.exchange import Exchange
from waybill_gateway.pack_endpoint import PackEndpoint
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import receive_file

MOST_DOCUMENTS = 64
_MB = 1024 * 1024
_HEADERS = MOST_DOCUMENTS * 1024
"""Bytes for the frames' headers, which are short."""


@dataclass(frozen=True, slots=True)
class ExtractEndpoint(PackEndpoint):
    """Takes a pack as its body."""

    async def receive(self, headers: Headers, body: Body, files: RequestFiles, exchange: Exchange) -> dict[str, Any]:
        if headers.get("content-type", "").partition(";")[0].strip().lower() != MEDIA_TYPE:
            raise refusals.not_a_pack(f"its Content-Type is not {MEDIA_TYPE}")
        most = self.megabytes * _MB
        with spans.span("receive document"):
            size = await receive_file(
                body,
                files.document,
                most=most + _HEADERS,
                megabytes=self.megabytes,
                seconds=self.settings.gateway_upload_timeout,
            )
        exchange.facts |= {"bytes": size, "kind": "pack"}
        wish = {"documents": MOST_DOCUMENTS, "bytes": most, "seconds": self.part_seconds}
        return {"extract": wish}

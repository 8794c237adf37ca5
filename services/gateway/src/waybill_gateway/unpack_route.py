"""`POST /unpack`: a ZIP becomes a pack of the files in it, those of nested ZIPs too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.datastructures import Headers

from waybill.http.multipart import BadForm, boundary_of
from waybill.messages import msg
from waybill.telemetry import spans
from waybill.telemetry.metrics import GATEWAY_DOCUMENTS
from waybill_gateway import refusals
from waybill_gateway.body import Body
from waybill_gateway.exchange import Exchange
from waybill_gateway.pack_endpoint import PackEndpoint
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import receive_form

_MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class UnpackEndpoint(PackEndpoint):
    """Takes the ZIP in a form, as `/process` takes a document."""

    @property
    def megabytes(self) -> int:
        return self.settings.batch_max_mb

    @property
    def most_deaths(self) -> int | None:
        return 10

    @property
    def _file_bytes(self) -> int:
        """The largest file. It shares the file that a parser may write with what precedes it in its part."""
        return min(self.settings.batch_max_file_mb * _MB, self.settings.gateway_max_result_mb * _MB // 2)

    async def receive(self, headers: Headers, body: Body, files: RequestFiles, exchange: Exchange) -> dict[str, Any]:
        try:
            boundary = boundary_of(headers.get("content-type"))
        except BadForm as error:
            raise refusals.unreadable_form(error) from error

        def on_field(_name: str, value: str) -> None:
            if value:
                exchange.identify(value)

        # A ZIP may take as much longer than a document as it may be larger.
        times = max(1.0, self.megabytes / self.settings.max_upload_mb)
        with spans.span("receive document"):
            form = await receive_form(
                body,
                boundary,
                files,
                fields=("job_id",),
                megabytes=self.megabytes,
                seconds=self.settings.gateway_upload_timeout * times,
                on_field=on_field,
                takes_mappings=lambda: False,
            )
        if form.size is None:
            raise refusals.bad_form(msg("gateway.no_file"))
        exchange.facts |= {"bytes": form.size, "kind": "zip"}
        GATEWAY_DOCUMENTS.labels("zip").inc()
        limits = {
            "files": self.settings.batch_max_files,
            "unpacked_bytes": self.settings.batch_max_unpacked_mb * _MB,
            "file_bytes": self._file_bytes,
            "ratio": self.settings.batch_max_ratio,
            "depth": self.settings.batch_max_depth,
        }
        return {"unpack": {"limits": limits, "bytes": self.part_bytes, "seconds": self.part_seconds}}

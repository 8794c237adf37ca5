"""`POST /attachment`: takes one embedded file out of a PDF. Nobody looks at its content: it is sent as plain bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waybill.messages import msg
from waybill_gateway import refusals
from waybill_gateway.content_negotiation import BYTES, Accept, Kind
from waybill_gateway.document_endpoint import DocumentEndpoint, DocumentTask
from waybill_gateway.exchange import Exchange
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import DocumentForm

_NUMBER = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AttachmentEndpoint(DocumentEndpoint):
    """Adds the number of the attachment."""

    @property
    def fields(self) -> tuple[str, ...]:
        return ("number",)

    def check_accept(self, accept: Accept) -> None:
        if not accept.quality(BYTES):
            raise refusals.not_acceptable(msg("gateway.accept", media_types=[BYTES]))

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:  # noqa: ARG002 - the other endpoint needs it
        if name == "number" and not _NUMBER.fullmatch(value):
            raise refusals.bad_form(msg("gateway.attachment"))

    def takes_mappings(self, exchange: Exchange) -> bool:  # noqa: ARG002 - as above
        return False

    def task(
        self,
        form: DocumentForm,
        files: RequestFiles,  # noqa: ARG002 - as above
        kind: Kind,
        accept: Accept,  # noqa: ARG002 - as above
        exchange: Exchange,
    ) -> DocumentTask:
        if "number" not in form.fields:
            raise refusals.bad_form(msg("gateway.no_attachment"))
        if kind != "pdf":
            raise refusals.not_a_pdf()
        number = exchange.facts["attachment"] = int(form.fields["number"])
        return DocumentTask({"attachment": number}, BYTES)

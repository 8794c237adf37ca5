"""`POST /render`: draws a page of a PDF, rotated as it was read, so that the boxes of its values fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waybill.messages import msg
from waybill_gateway import refusals
from waybill_gateway.content_negotiation import PNG, Accept, Kind
from waybill_gateway.document_endpoint import DocumentEndpoint, DocumentTask
from waybill_gateway.exchange import Exchange
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import DocumentForm

_PAGE = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_SCALE = re.compile(r"[1-3](\.[0-9]{1,2})?|4(\.00?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class RenderEndpoint(DocumentEndpoint):
    """Adds the page and the scale."""

    @property
    def fields(self) -> tuple[str, ...]:
        return ("page", "scale")

    def check_accept(self, accept: Accept) -> None:
        if not accept.quality(PNG):
            raise refusals.not_acceptable(msg("gateway.accept", media_types=[PNG]))

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:  # noqa: ARG002 - the other endpoint needs it
        if name == "page" and not _PAGE.fullmatch(value):
            raise refusals.bad_form(msg("gateway.page"))
        if name == "scale" and value and not _SCALE.fullmatch(value):
            raise refusals.bad_form(msg("gateway.scale"))

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
        if "page" not in form.fields:
            raise refusals.bad_form(msg("gateway.no_page"))
        if kind != "pdf":
            raise refusals.not_a_pdf()
        page, scale = int(form.fields["page"]), float(form.fields.get("scale") or 1)
        exchange.facts |= {"page": page, "scale": scale}
        return DocumentTask({"page": page, "scale": scale}, PNG)

"""`POST /process`: converts a document to JSON or XML."""

from __future__ import annotations

from dataclasses import dataclass

from waybill.messages import msg
from waybill_gateway import refusals
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.document_endpoint import DocumentEndpoint, DocumentTask
from waybill_gateway.exchange import Exchange
from waybill_gateway.mappings import Mappings, name_in
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import DocumentForm


@dataclass(frozen=True, slots=True)
class ProcessEndpoint(DocumentEndpoint):
    """Adds the mapping, and chooses the output."""

    mappings: Mappings

    @property
    def fields(self) -> tuple[str, ...]:
        return ("mapping", "pretty", "loss")

    def check_accept(self, accept: Accept) -> None:
        accept.check_any()

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:
        if name == "mapping" and value:
            exchange.mapping = self.mappings.find(value)
            if exchange.mapping is None and not exchange.proven:  # nobody else may send it with the document
                raise refusals.mapping_unknown(value, self.mappings.names)
        if name == "pretty" and value not in ("", "0", "1"):
            raise refusals.bad_form(msg("gateway.pretty"))
        if name == "loss" and value not in ("", "strict", "lenient"):
            raise refusals.bad_form(msg("gateway.loss"))

    def takes_mappings(self, exchange: Exchange) -> bool:
        if not exchange.proven:
            raise refusals.mappings_unproven()
        return True

    def task(
        self, form: DocumentForm, files: RequestFiles, kind: Kind, accept: Accept, exchange: Exchange
    ) -> DocumentTask:
        asked = form.fields.get("mapping")
        if asked and exchange.mapping is None:
            # The parser looks for it among those that were sent.
            exchange.mapping = name_in(asked) if form.has_mappings else None
            if exchange.mapping is None:
                raise refusals.mapping_unknown(asked, self.mappings.names)
        exchange.facts["mapping"] = exchange.mapping
        offer = accept.choose(kind, mapping=exchange.mapping is not None)
        exchange.facts["wants"] = offer.wants
        call = {
            "kind": offer.kind,
            "mapping": exchange.mapping,
            "mappings": str(files.mappings) if form.has_mappings else None,
            "wants": offer.wants,
            "pretty": form.fields.get("pretty") == "1",
            "loss": form.fields.get("loss") or None,
        }
        return DocumentTask(call, offer.media_type)

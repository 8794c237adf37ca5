"""`POST /process`: converts a document to JSON or XML."""

from __future__ import annotations

from dataclasses import dataclass

from waybill.messages import msg
from waybill_gateway import refusals
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.endpoint import DocumentTask, Endpoint, Exchange
from waybill_gateway.mappings import Mappings
from waybill_gateway.upload_form import DocumentForm


@dataclass(frozen=True, slots=True)
class ProcessEndpoint(Endpoint):
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
            if exchange.mapping is None:
                raise refusals.mapping_unknown(value, self.mappings.names)
        if name == "pretty" and value not in ("", "0", "1"):
            raise refusals.bad_form(msg("gateway.pretty"))
        if name == "loss" and value not in ("", "strict", "lenient"):
            raise refusals.bad_form(msg("gateway.loss"))

    def task(self, form: DocumentForm, kind: Kind, accept: Accept, exchange: Exchange) -> DocumentTask:
        exchange.facts["mapping"] = exchange.mapping
        offer = accept.choose(kind, mapping=exchange.mapping is not None)
        exchange.facts["wants"] = offer.wants
        call = {
            "kind": offer.kind,
            "mapping": exchange.mapping,
            "wants": offer.wants,
            "pretty": form.fields.get("pretty") == "1",
            "loss": form.fields.get("loss") or None,
        }
        return DocumentTask(call, offer.media_type)

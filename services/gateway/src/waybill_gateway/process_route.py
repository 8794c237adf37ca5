"""`POST /process`: a document becomes JSON or XML. Adds the mapping and the conversion that is wanted."""

from __future__ import annotations

from dataclasses import dataclass

from waybill_gateway import refusals
from waybill_gateway.catalogue import Catalogue
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.endpoint import Endpoint, Exchange, Order
from waybill_gateway.upload_form import Form


@dataclass(frozen=True, slots=True)
class Processing(Endpoint):
    """The endpoint."""

    catalogue: Catalogue

    @property
    def fields(self) -> tuple[str, ...]:
        return ("mapping", "pretty")

    def check_accept(self, accept: Accept) -> None:
        accept.check_any()

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:
        if name == "mapping" and value:
            exchange.mapping = self.catalogue.find(value)
            if exchange.mapping is None:
                raise refusals.mapping_unknown(value, self.catalogue.names)
        if name == "pretty" and value not in ("", "0", "1"):
            raise refusals.bad_form("The field 'pretty' is 0 or 1.")

    def order(self, form: Form, kind: Kind, accept: Accept, exchange: Exchange) -> Order:
        exchange.facts["mapping"] = exchange.mapping
        conversion = accept.choose(kind, mapping=exchange.mapping is not None)
        exchange.facts["wants"] = conversion.wants
        call = {
            "kind": conversion.kind,
            "mapping": exchange.mapping,
            "wants": conversion.wants,
            "pretty": form.fields.get("pretty") == "1",
        }
        return Order(call, conversion.media_type)

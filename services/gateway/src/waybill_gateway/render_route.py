"""`POST /render`: a page of a PDF becomes an image, turned as it was read, so that the boxes of its values fit."""

from __future__ import annotations

import re
from dataclasses import dataclass

from waybill_gateway import refusals
from waybill_gateway.content_negotiation import PNG, Accept, Kind
from waybill_gateway.endpoint import Endpoint, Exchange, Order
from waybill_gateway.upload_form import Form

_PAGE = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_SCALE = re.compile(r"[1-3](\.[0-9]{1,2})?|4(\.00?)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rendering(Endpoint):
    """The endpoint."""

    @property
    def fields(self) -> tuple[str, ...]:
        return ("page", "scale")

    def check_accept(self, accept: Accept) -> None:
        if not accept.quality(PNG):
            raise refusals.not_acceptable(f"There is nothing here but {PNG}.")

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:  # noqa: ARG002 - others learn from it
        if name == "page" and not _PAGE.fullmatch(value):
            raise refusals.bad_form("The field 'page' is a page's number, counted from 1.")
        if name == "scale" and value and not _SCALE.fullmatch(value):
            raise refusals.bad_form("The field 'scale' is a number from 1 to 4: pixels to a point.")

    def order(self, form: Form, kind: Kind, accept: Accept, exchange: Exchange) -> Order:  # noqa: ARG002 - as above
        if "page" not in form.fields:
            raise refusals.bad_form("The form has no 'page'.")
        if kind != "pdf":
            raise refusals.not_a_pdf()
        page, scale = int(form.fields["page"]), float(form.fields.get("scale") or 1)
        exchange.facts |= {"page": page, "scale": scale}
        return Order({"page": page, "scale": scale}, PNG)

"""What `POST /render` and `POST /attachment` share: they take a part out of a PDF, and fields of the form say which."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from waybill.messages import Message, msg
from waybill_gateway import refusals
from waybill_gateway.content_negotiation import Accept, Kind
from waybill_gateway.document_endpoint import DocumentEndpoint, DocumentTask
from waybill_gateway.exchange import Exchange
from waybill_gateway.spool import RequestFiles
from waybill_gateway.upload_form import DocumentForm


class PartField(NamedTuple):
    """A field that says which part is wanted."""

    pattern: re.Pattern[str]
    unfit: Message
    missing: Message | None = None
    """What is said without the field; None if it may be left out."""


@dataclass(frozen=True, slots=True)
class PdfPartEndpoint(DocumentEndpoint):
    media_type: ClassVar[str]
    part_fields: ClassVar[Mapping[str, PartField]]

    @abstractmethod
    def part(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Which part these fields mean, for the parser and for the log."""

    @property
    def fields(self) -> tuple[str, ...]:
        return tuple(self.part_fields)

    def check_accept(self, accept: Accept) -> None:
        if not accept.quality(self.media_type):
            raise refusals.not_acceptable(msg("gateway.accept", media_types=[self.media_type]))

    def check_field(self, name: str, value: str, exchange: Exchange) -> None:  # noqa: ARG002 - `/process` needs it
        if not self.part_fields[name].pattern.fullmatch(value):
            raise refusals.bad_form(self.part_fields[name].unfit)

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
        for name, field in self.part_fields.items():
            if field.missing is not None and name not in form.fields:
                raise refusals.bad_form(field.missing)
        if kind != "pdf":
            raise refusals.not_a_pdf()
        part = self.part(form.fields)
        exchange.facts |= part
        return DocumentTask(part, self.media_type)

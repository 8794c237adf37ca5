"""`POST /attachment`: takes one embedded file out of a PDF. Nobody looks at its content: it is sent as plain bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from waybill.messages import msg
from waybill_gateway.content_negotiation import BYTES
from waybill_gateway.pdf_part import PartField, PdfPartEndpoint

_NUMBER = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AttachmentEndpoint(PdfPartEndpoint):
    media_type = BYTES
    part_fields: ClassVar = {
        "number": PartField(_NUMBER, msg("gateway.attachment"), missing=msg("gateway.no_attachment"))
    }

    def part(self, given: Mapping[str, str]) -> dict[str, Any]:
        return {"attachment": int(given["number"])}

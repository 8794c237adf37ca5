"""`POST /render`: draws a page of a PDF, rotated as it was read, so that the boxes of its values fit."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from waybill.messages import msg
from waybill_gateway.content_negotiation import PNG
from waybill_gateway.pdf_part import PartField, PdfPartEndpoint

_PAGE = re.compile(r"[1-9][0-9]{0,5}", re.ASCII)
_SCALE = re.compile(r"|[1-3](\.[0-9]{1,2})?|4(\.00?)?", re.ASCII)
"""An empty field is as good as none."""


@dataclass(frozen=True, slots=True)
class RenderEndpoint(PdfPartEndpoint):
    media_type = PNG
    part_fields: ClassVar = {
        "page": PartField(_PAGE, msg("gateway.page"), missing=msg("gateway.no_page")),
        "scale": PartField(_SCALE, msg("gateway.scale")),
    }

    def part(self, given: Mapping[str, str]) -> dict[str, Any]:
        return {"page": int(given["page"]), "scale": float(given.get("scale") or 1)}

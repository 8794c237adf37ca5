"""What a run asks of the gateway: the mapping that its job named, or one of the catalogue that it is pinned to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.errors import BadMapping, GatewayUnavailable
from waybill.messages import msg
from waybill_documents.catalogue import Summary, summarised, summary

if TYPE_CHECKING:
    from waybill_convert.clients.answers import ConvertedDocument
    from waybill_convert.pinned_catalogues import OfferedCatalogue
    from waybill_convert.repository.conversions import NamedMapping
    from waybill_documents.mapping_files import MappingFiles


@dataclass(frozen=True, slots=True)
class MappingWish:
    """A named mapping with its files, if the gateway does not have it; or the candidates of `auto`."""

    named: NamedMapping
    files: MappingFiles | None = None
    candidates: OfferedCatalogue | None = None

    def check(self, conversion: ConvertedDocument) -> None:
        """Refuse XML that is not what was asked for. That is the gateway's fault, so the job is retried."""
        known = self._chosen(conversion) if self.candidates is not None else self._named(conversion)
        if known is not None and conversion.root not in known.roots:
            wanted = " or ".join(known.roots)
            raise GatewayUnavailable(msg("convert.gateway.other_root", found=conversion.root, wanted=wanted))

    def _chosen(self, conversion: ConvertedDocument) -> Summary | None:
        used = conversion.used
        if self.candidates is None or not self.candidates.pinned.has(used.name, used.sha256):
            raise GatewayUnavailable(msg("convert.gateway.other_mapping", name=used.name))
        shipped = summary(used.name)
        return shipped if shipped is not None and shipped.sha256 == used.sha256 else None

    def _named(self, conversion: ConvertedDocument) -> Summary | None:
        """A version that is neither shipped nor here can only be one of the operator's folder that was changed."""
        shipped = summary(self.named.name) if self.files is None else None
        if shipped is None and self.named.sha256 not in (None, conversion.used.sha256):
            raise BadMapping(msg("convert.mapping.changed", name=self.named.name))
        return summarised(self.files.document.encode()) if self.files is not None else shipped

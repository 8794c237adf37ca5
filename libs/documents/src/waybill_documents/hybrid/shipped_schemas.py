"""The published schemas of UBL 2.1 and of Cross Industry Invoice, unchanged, in one archive each.

`schemas/ORIGIN.md` says where they come from and under which licence.
"""

from __future__ import annotations

import functools
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources

from lxml import etree

from waybill_documents.xml_output.safe_xml import parser
from waybill_documents.xml_output.validation import XmlSchema


@dataclass(frozen=True, slots=True)
class ShippedSchemas:
    """An archive of schemas that include one another."""

    archive: str

    def documents(self) -> Iterator[etree._Element]:
        """The root of every schema in it."""
        for content in _contents(self.archive).values():
            yield etree.fromstring(content)

    def schema(self, name: str) -> XmlSchema:
        """One of them, compiled. That takes up to half a second, so each process does it once."""
        return _compiled(self.archive, name)


UBL_2_1 = ShippedSchemas("ubl-2.1.zip")
CII_D16B = ShippedSchemas("cii-d16b.zip")
CII_D22B = ShippedSchemas("cii-d22b.zip")


class _InArchive(etree.Resolver):
    """Resolves every include to the file of that name, whatever folder it is said to be in."""

    def __init__(self, contents: dict[str, bytes]) -> None:
        self._contents = contents

    def resolve(self, system_url: str, _public_id: str, context: object) -> object:  # type: ignore[override]
        return self.resolve_string(self._contents[system_url.rpartition("/")[2]], context, base_url=system_url)


def _contents(archive: str) -> dict[str, bytes]:
    with (
        (resources.files("waybill_documents") / "hybrid" / "schemas" / archive).open("rb") as file,
        zipfile.ZipFile(file) as opened,
    ):
        return {name: opened.read(name) for name in opened.namelist()}


@functools.cache
def _compiled(archive: str, name: str) -> XmlSchema:
    contents = _contents(archive)
    reading = parser()
    reading.resolvers.add(_InArchive(contents))
    document = etree.fromstring(contents[name], reading, base_url=f"waybill-schema:/{name}")
    return XmlSchema(name, etree.XMLSchema(document), {})

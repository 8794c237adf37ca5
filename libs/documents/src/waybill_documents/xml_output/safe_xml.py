"""Parses XML for the whole library: without network, entities or document types.

XML comes from attachments of PDFs and from folders of mappings. Neither has a reason to define entities, so a document
type declaration is refused.
"""

from __future__ import annotations

from contextlib import suppress

from lxml import etree

from waybill_documents.messages import DocumentMessage


class HostileXml(ValueError):
    """The XML declares a document type, which is where entity bombs and external references live."""

    def __init__(self) -> None:
        self.says = DocumentMessage("xml.document_type")
        super().__init__(self.says.english)


def parser() -> etree.XMLParser:
    """A parser that opens no other files. libxml2's own limits on depth and text length stay in force."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=False,
    )


class _Prolog:
    """Sees only what comes before the first element."""

    hostile = False

    def doctype(self, *_declared: object) -> None:
        self.hostile = True
        raise _Seen

    def start(self, *_element: object) -> None:
        raise _Seen

    def close(self) -> None:
        """Nothing is built."""


class _Seen(Exception):
    pass


def parse(xml: bytes) -> etree._Element:
    """The root element. Raises `etree.XMLSyntaxError` for invalid XML and `HostileXml` for a document type.

    libxml2 expands entities in attributes even when told not to, so a first pass looks for the document type. It ends
    at the first element.
    """
    prolog = _Prolog()
    with suppress(_Seen):
        etree.fromstring(
            xml,
            etree.XMLParser(
                target=prolog,  # type: ignore[arg-type]
                resolve_entities=False,
                no_network=True,
            ),
        )
    if prolog.hostile:
        raise HostileXml
    return etree.fromstring(xml, parser())


def local(tag: str) -> str:
    """An element's name without its namespace."""
    return tag.rpartition("}")[2]

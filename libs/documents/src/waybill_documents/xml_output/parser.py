"""How XML is read anywhere in this library: without a network, without entities, without a document type.

What reaches us as XML comes out of somebody's PDF or from a folder of mappings. Neither has a reason to define
entities, so a document type declaration is refused outright instead of being defused.
"""

from __future__ import annotations

from contextlib import suppress

from lxml import etree


class HostileXml(ValueError):
    """The XML declares a document type, which is where entity bombs and external references live."""


def parser() -> etree.XMLParser:
    """A parser that opens nothing but what it is given. libxml2's own limits on depth and text length stay in force."""
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
    """Looks at what stands before the first element, and at nothing else."""

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
    """The root element; raises `etree.XMLSyntaxError` for what is not XML and `HostileXml` for a document type.

    libxml2 expands entities in attributes even when told to leave entities alone, so the document type is looked
    for in a first pass that ends at the first element.
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
        raise HostileXml("it declares a document type")
    return etree.fromstring(xml, parser())


def local(tag: str) -> str:
    """An element's name without its namespace."""
    return tag.rpartition("}")[2]

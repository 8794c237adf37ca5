"""The order of elements, taken from the published schemas, so that the table does not have to know it."""

from __future__ import annotations

import functools

from lxml import etree

from waybill_documents.hybrid.en16931.syntaxes import Syntax
from waybill_documents.hybrid.shipped_schemas import CII_D22B, UBL_2_1, ShippedSchemas

_XSD = "{http://www.w3.org/2001/XMLSchema}"
_SCHEMAS = {Syntax.CII: CII_D22B, Syntax.UBL: UBL_2_1}

Order = dict[str, dict[str, int]]
"""The rank of each child, by the name of its parent."""


def put_in_order(element: etree._Element, syntax: Syntax) -> None:
    """Sort everything below an element as its schema wants it. Elements of the same name keep their order."""
    ranks = _order(syntax).get(str(element.tag), {})
    children = list(element)
    children.sort(key=lambda child: ranks.get(str(child.tag), len(ranks)))
    element[:] = children
    for child in children:
        if len(child):
            put_in_order(child, syntax)


@functools.cache
def _order(syntax: Syntax) -> Order:
    """In both schemas, elements of one name have one type, wherever they stand."""
    return _read_order(_SCHEMAS[syntax])


def _read_order(schemas: ShippedSchemas) -> Order:
    sequences: dict[str, dict[str, int]] = {}
    types: dict[str, str] = {}
    for document in schemas.documents():
        namespace = document.get("targetNamespace", "")
        for element in document.iter(f"{_XSD}element"):
            name, type_ = element.get("name"), element.get("type")
            if name and type_:
                types[f"{{{namespace}}}{name}"] = _qualified(element, type_)
        for type_element in document.iterchildren(f"{_XSD}complexType"):
            children = [_child(one, namespace) for one in type_element.iterfind(f"{_XSD}sequence/{_XSD}element")]
            name = f"{{{namespace}}}{type_element.get('name')}"
            sequences[name] = {child: rank for rank, child in enumerate(children)}
    return {element: sequences[type_] for element, type_ in types.items() if sequences.get(type_)}


def _child(element: etree._Element, namespace: str) -> str:
    reference = element.get("ref")
    return _qualified(element, reference) if reference else f"{{{namespace}}}{element.get('name')}"


def _qualified(element: etree._Element, name: str) -> str:
    """A name with its namespace, by the prefixes in force at an element of a schema."""
    prefix, _, local = name.rpartition(":")
    return f"{{{element.nsmap.get(prefix or None, '')}}}{local}"

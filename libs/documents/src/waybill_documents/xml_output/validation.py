"""Validates XML by a schema, and explains what does not fit for the person who has to fix it.

A schema can include other files from its own folder, and nothing from anywhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from lxml import etree

from waybill_documents.faults import DocumentRejected, FaultCode, Finding, MappingFault
from waybill_documents.mapping_files import MappingPlace
from waybill_documents.messages import DocumentMessage
from waybill_documents.xml_output.safe_xml import HostileXml, local, parse, parser

MOST_FINDINGS = 20
"""Nobody reads more findings, and one wrong column of a long invoice causes hundreds."""

_XS = "{http://www.w3.org/2001/XMLSchema}"
_BASE = "waybill-schema:/"
_PLAIN_NAME = re.compile(r"[\w.-]+\.xsd", re.ASCII)
_LARGEST = 5_000_000


class Origin(NamedTuple):
    """The origin of an element: the table and row, and the value if it shows exactly one."""

    element: str
    table: str | None
    row: int | None
    value: str | None

    @property
    def path(self) -> str | None:
        """The path as in findings: `lines[213].amount`."""
        if self.table is None:
            return self.value
        return f"{self.table}[{self.row}]" + (f".{self.value}" if self.value else "")


class _Beside(etree.Resolver):
    """Resolves includes from the schema's own folder and refuses everything else."""

    def __init__(self, folder: MappingPlace | None) -> None:
        self.folder = folder
        self.refused: str | None = None
        """The name that was refused. libxml2 swallows the exception and does not treat a failed import as an error."""

    def resolve(self, system_url: str, _public_id: str, context: object) -> object:  # type: ignore[override]
        name = system_url.removeprefix(_BASE)
        plain = system_url.startswith(_BASE) and _PLAIN_NAME.fullmatch(name)
        if not plain or self.folder is None or not (self.folder / name).is_file():
            self.refused = name
            raise MappingFault(DocumentMessage("mapping.schema.not_beside", name=name), "xml.xsd")
        return self.resolve_string(_bounded((self.folder / name).read_bytes()), context, base_url=system_url)


def load_schema(content: bytes, beside: MappingPlace | None = None, name: str = "schema.xsd") -> XmlSchema:
    """Load a schema. Its includes must be in the folder `beside`; without that folder, includes are refused.

    Raises MappingFault for an invalid schema, and for includes from anywhere else.
    """
    reading, resolver = parser(), _Beside(beside)
    reading.resolvers.add(resolver)
    try:
        parse(_bounded(content))
        document = etree.fromstring(content, reading, base_url=_BASE + name)
        schema = XmlSchema(name, etree.XMLSchema(document), _meanings(document))
    except HostileXml as hostile:
        raise MappingFault(DocumentMessage("mapping.schema.refused", why=hostile.says), "xml.xsd") from None
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as broken:
        if resolver.refused is None:
            raise MappingFault(DocumentMessage("mapping.schema.broken", detail=str(broken)), "xml.xsd") from None
    if resolver.refused is not None:
        raise MappingFault(DocumentMessage("mapping.schema.not_beside", name=resolver.refused), "xml.xsd")
    return schema


class XmlSchema:
    """A compiled schema. It is loaded once by `load_schema` and used for many documents, by one thread at a time."""

    def __init__(self, name: str, compiled: etree.XMLSchema, meanings: dict[str, str]) -> None:
        self.name = name
        self._compiled = compiled
        self._meanings = meanings

    def fits(self, root: etree._Element) -> bool:
        """Whether the document fits."""
        return bool(self._compiled.validate(root))

    def explain(self, root: etree._Element, origins: Sequence[Origin] = ()) -> None:
        """Raise DocumentRejected INVALID_XML with a finding for each element that does not fit.

        `origins` has what each element was written from, in document order.
        """
        if self._compiled.validate(root):
            return
        errors: list[etree._LogEntry] = [*self._compiled.error_log]  # type: ignore[misc]  # the stubs forget that it is iterable
        wrong = [(path or "", list(same)) for path, same in groupby(errors, key=lambda error: error.path)]
        shown = [(path, same, _at(root, path)) for path, same in wrong[:MOST_FINDINGS]]
        elements = {element for _, _, element in shown if element is not None}
        made = {
            element: origin for element, origin in zip(root.iter("*"), origins, strict=False) if element in elements
        }
        findings = [
            self._finding(path, same, element, None if element is None else made.get(element))
            for path, same, element in shown
        ]
        left = len(wrong) - len(findings)
        raise DocumentRejected(FaultCode.INVALID_XML, DocumentMessage("xml.invalid"), and_more(findings, left))

    def _finding(
        self, path: str, errors: list[etree._LogEntry], element: etree._Element | None, origin: Origin | None
    ) -> Finding:
        # Some versions of libxml2 report a value twice: the rule it breaks, then that it is not of its type.
        said = [re.sub(r"\{[a-z][^}]*\}", "", error.message) for error in errors]
        name = _quoted(said[0]) or local(path)
        text = (element.text or "").strip() if element is not None else ""
        row = origin.row if origin else None
        message = self._message(name, text, said).adding(
            element=path,
            xml_line=errors[0].line,
            schema=self.name,
            line=row + 1 if row is not None else None,
        )
        return Finding(FaultCode.INVALID_XML, message, origin.path if origin else None, "xml.xsd")

    def _message(self, name: str, text: str, said: list[str]) -> DocumentMessage:
        """Our message for libxml2's errors. Its own words are used only if none of ours fit."""
        whole = " ".join(said)
        typed = re.search(r"is not a valid value of the (?:\w+ )*type '(?:xs:)?([^']*)'", whole)
        wants = self._meanings.get(name) or (self._meanings.get(typed[1], typed[1]) if typed else None)
        if wants and (typed or "[facet " in whole):
            if not text:
                return DocumentMessage("xml.invalid_empty", name=name, wanted=wants)
            return DocumentMessage("xml.invalid_value", name=name, text=text[:60], wanted=wants)
        expected = re.search(r"Expected is (?:one of )?\( ?([^)]*?),? ?\)", whole)
        wanted = [each.strip() for each in expected[1].split(",")] if expected else None
        if "Missing child element" in whole and expected:
            return DocumentMessage("xml.child_missing", name=name, expected=wanted)
        if "This element is not expected" in whole:
            return DocumentMessage("xml.unexpected", name=name, expected=wanted)
        detail = re.sub(r"^Element '[^']*'(, attribute '[^']*')?: (\[facet '\w+'\] )?", "", said[0])
        return DocumentMessage("xml.invalid_otherwise", name=name, detail=detail)


def not_more_than(most: int, findings: list[Finding]) -> tuple[Finding, ...]:
    """The first ones in full, and one that says how many more there are."""
    return and_more(findings[:most], len(findings) - most)


def and_more(findings: list[Finding], left: int) -> tuple[Finding, ...]:
    """These, and one that says how many more there are."""
    if left <= 0:
        return tuple(findings)
    return (*findings, Finding(findings[0].code, DocumentMessage("finding.more", count=left), rule=findings[0].rule))


def _bounded(content: bytes) -> bytes:
    if len(content) > _LARGEST:
        raise MappingFault(DocumentMessage("mapping.schema.too_large", megabytes=_LARGEST // 1_000_000), "xml.xsd")
    return content


def _at(root: etree._Element, path: str) -> etree._Element | None:
    """The element that libxml2 complains about."""
    prefixes = {prefix: address for prefix, address in root.nsmap.items() if prefix}
    try:
        found = root.getroottree().xpath(path, namespaces=prefixes)
    except etree.XPathError:
        return None
    element = found[0] if isinstance(found, list) and found else None
    return element if isinstance(element, etree._Element) else None


def _quoted(message: str) -> str | None:
    named = re.match(r"Element '([^']*)'", message)
    return named[1] if named else None


def _meanings(document: etree._Element) -> dict[str, str]:
    """The schema's own documentation of its simple types, by type and by element."""
    found = {}
    for type_ in document.iter(f"{_XS}simpleType"):
        name, said = type_.get("name"), type_.findtext(f"{_XS}annotation/{_XS}documentation")
        if name and said:
            found[name] = " ".join(said.split())
    elements: dict[str, set[str]] = {}
    for element in document.iter(f"{_XS}element"):
        elements.setdefault(element.get("name", ""), set()).add(element.get("type", ""))
    one_type = {name: types.pop() for name, types in elements.items() if len(types) == 1}
    return found | {name: found[type_] for name, type_ in one_type.items() if type_ in found}

"""XSD validation, and what it finds wrong in the words of the person who has to put it right.

A schema loads from its own folder and from nowhere else: what it includes must lie beside it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources.abc import Traversable
from itertools import groupby
from typing import NamedTuple

from lxml import etree

from waybill_documents.faults import DocumentFault, FaultCode, Finding, MappingFault
from waybill_documents.xml_output.parser import HostileXml, local, parse, parser

MOST_FINDINGS = 20
"""Nobody reads more of them, and one wrong column of a long invoice makes hundreds."""

_XS = "{http://www.w3.org/2001/XMLSchema}"
_BASE = "waybill-schema:/"
_PLAIN_NAME = re.compile(r"[\w.-]+\.xsd", re.ASCII)
_LARGEST = 5_000_000


class Origin(NamedTuple):
    """What an element was written from: the table and row, and the value when it shows just one."""

    element: str
    table: str | None
    row: int | None
    value: str | None

    @property
    def path(self) -> str | None:
        """As findings name a value: `lines[213].amount`."""
        if self.table is None:
            return self.value
        return f"{self.table}[{self.row}]" + (f".{self.value}" if self.value else "")


class _Beside(etree.Resolver):
    """Answers what a schema includes from the schema's own folder, and refuses everything else."""

    def __init__(self, folder: Traversable | None) -> None:
        self.folder = folder
        self.refused: str | None = None
        """libxml2 forgets the exception, and an import that cannot be had is no error to it."""

    def resolve(self, system_url: str, _public_id: str, context: object) -> object:  # type: ignore[override]
        name = system_url.removeprefix(_BASE)
        plain = system_url.startswith(_BASE) and _PLAIN_NAME.fullmatch(name)
        if not plain or self.folder is None or not (self.folder / name).is_file():
            self.refused = name
            raise MappingFault(f"the schema refers to '{name}', which is not beside it", "xml.xsd")
        return self.resolve_string(_bounded((self.folder / name).read_bytes()), context, base_url=system_url)


def load_schema(content: bytes, beside: Traversable | None = None, name: str = "schema.xsd") -> XmlSchema:
    """The schema in this text. What it includes is looked for in the folder `beside`, without one it includes nothing.

    Raises MappingFault for what is no schema, or reaches for anything else.
    """
    reading, resolver = parser(), _Beside(beside)
    reading.resolvers.add(resolver)
    try:
        parse(_bounded(content))
        document = etree.fromstring(content, reading, base_url=_BASE + name)
        schema = XmlSchema(name, etree.XMLSchema(document), _meanings(document))
    except HostileXml as hostile:
        raise MappingFault(f"the schema is refused: {hostile}", "xml.xsd") from None
    except (etree.XMLSyntaxError, etree.XMLSchemaParseError) as broken:
        if resolver.refused is None:
            raise MappingFault(f"the schema cannot be used: {broken}", "xml.xsd") from None
    if resolver.refused is not None:
        raise MappingFault(f"the schema refers to '{resolver.refused}', which is not beside it", "xml.xsd")
    return schema


class XmlSchema:
    """A compiled schema. Made once by `load_schema` and used for many documents, by one thread at a time."""

    def __init__(self, name: str, compiled: etree.XMLSchema, meanings: dict[str, str]) -> None:
        self.name = name
        self._compiled = compiled
        self._meanings = meanings

    def fits(self, root: etree._Element) -> bool:
        """Whether the document fits."""
        return bool(self._compiled.validate(root))

    def explain(self, root: etree._Element, origins: Sequence[Origin] = ()) -> None:
        """Raise DocumentFault INVALID_XML with a finding for each element that does not fit.

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
        raise DocumentFault(FaultCode.INVALID_XML, "The XML does not fit its schema.", and_more(findings, left))

    def _finding(
        self, path: str, errors: list[etree._LogEntry], element: etree._Element | None, origin: Origin | None
    ) -> Finding:
        # Some versions of libxml2 say it twice about a value: which rule it breaks, then that it is not of its type.
        said = [re.sub(r"\{[a-z][^}]*\}", "", error.message) for error in errors]
        name = _quoted(said[0]) or local(path)
        text = (element.text or "").strip() if element is not None else ""
        row = origin.row if origin else None
        sentence = self._sentence(name, text, said)
        line = errors[0].line
        return Finding(
            FaultCode.INVALID_XML,
            f"line {row + 1}: {sentence}" if row is not None else sentence,
            path=origin.path if origin else None,
            rule="xml.xsd",
            params={
                "element": path,
                "xml_line": line,
                "schema": self.name,
                **({"line": row + 1} if row is not None else {}),
            },
        )

    def _sentence(self, element: str, text: str, said: list[str]) -> str:
        whole = " ".join(said)
        typed = re.search(r"is not a valid value of the (?:\w+ )*type '(?:xs:)?([^']*)'", whole)
        wants = self._meanings.get(element) or (self._meanings.get(typed[1], typed[1]) if typed else None)
        if wants and (typed or "[facet " in whole):
            shown = f"'{text[:60]}'" if text else "nothing"
            return f"<{element}> is {shown}, expected is {wants}"
        expected = re.search(r"Expected is (?:one of )?\( ?([^)]*?),? ?\)", whole)
        wanted = " or ".join(f"<{name.strip()}>" for name in expected[1].split(",")) if expected else ""
        if "Missing child element" in whole and expected:
            return f"<{element}> lacks {wanted}"
        if "This element is not expected" in whole:
            return f"<{element}> is not expected here" + (f", but {wanted}" if expected else "")
        return re.sub(r"^Element '[^']*'(, attribute '[^']*')?: (\[facet '\w+'\] )?", f"<{element}>: ", said[0])


def not_more_than(most: int, findings: list[Finding]) -> tuple[Finding, ...]:
    """The first ones in full, and one that says how many more there are."""
    return and_more(findings[:most], len(findings) - most)


def and_more(findings: list[Finding], left: int) -> tuple[Finding, ...]:
    """These, and one that says how many more there are."""
    if left <= 0:
        return tuple(findings)
    more = Finding(findings[0].code, f"and {left} more like these", rule=findings[0].rule, params={"more": left})
    return (*findings, more)


def _bounded(content: bytes) -> bytes:
    if len(content) > _LARGEST:
        raise MappingFault(f"the schema is larger than {_LARGEST // 1_000_000} MB", "xml.xsd")
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
    """What the schema itself says about its simple types, by type and by the elements that have it."""
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

"""The document that is read, and the record of what was used of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from lxml import etree

from waybill_documents.hybrid.en16931.paths import Path, PathCondition, PathStep
from waybill_documents.hybrid.en16931.syntaxes import CREDIT_NOTE_ROOT, Syntax, is_leaf, qualified, text_at, text_of

_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"

Evidence = tuple[tuple[etree._Element, str], ...]
"""The elements and attributes that the conditions of a path looked at. They are used with the value."""


@dataclass(slots=True)
class TermSource:
    """A document in one of the syntaxes. It records what the table used of it."""

    root: etree._Element
    syntax: Syntax
    currency: str = ""
    used: set[etree._Element] = field(default_factory=set)
    used_attributes: set[tuple[etree._Element, str]] = field(default_factory=set)
    unreadable: list[tuple[str, etree._Element]] = field(default_factory=list)
    """Terms whose value cannot be read, such as a date in another format."""
    fillers: list[etree._Element] = field(default_factory=list)
    """Elements that only the syntax demands, and that say something all the same."""

    @property
    def credit_note(self) -> bool:
        """Whether it is a UBL CreditNote."""
        return self.root.tag == CREDIT_NOTE_ROOT

    def find(self, context: etree._Element, path: Path) -> Iterator[tuple[etree._Element, Evidence]]:
        """The elements at a path."""
        yield from self._walk(context, path.steps, ())

    def first(self, context: etree._Element, path: Path) -> etree._Element | None:
        """The first element at a path that is not empty."""
        for element, _ in self.find(context, path):
            if not is_leaf(element) or text_of(element):
                return element
        return None

    def use(self, evidence: Evidence) -> None:
        """Count these elements, and these attributes, as used."""
        for element, attribute in evidence:
            if attribute:
                self.used_attributes.add((element, attribute))
            else:
                self.used.add(element)

    def left_over(self) -> Iterator[tuple[etree._Element, str, str]]:
        """Every element with an unused value or attribute, with the attribute's name and the value.

        The attributes of an empty element describe nothing, as in an address whose only content is its scheme.
        """
        for element in self.root.iter("*"):
            leaf = is_leaf(element)
            text = text_of(element) if leaf else ""
            if leaf and element not in self.used:
                if text:
                    yield element, "", text
                continue
            for name, value in element.attrib.items():
                attribute = str(name)
                if value and not attribute.startswith(_XSI) and (element, attribute) not in self.used_attributes:
                    yield element, attribute.rpartition("}")[2], str(value)

    def _walk(
        self, context: etree._Element, steps: tuple[PathStep, ...], evidence: Evidence
    ) -> Iterator[tuple[etree._Element, Evidence]]:
        if not steps:
            yield context, evidence
            return
        step, *others = steps
        for child in context.iterchildren(qualified(step.tag, credit_note=self.credit_note)):
            proof = self._holding(child, step.conditions)
            if proof is not None:
                yield from self._walk(child, tuple(others), evidence + proof)

    def _holding(self, element: etree._Element, conditions: tuple[PathCondition, ...]) -> Evidence | None:
        """What proves that the conditions hold; None if they do not."""
        proof: Evidence = ()
        for condition in conditions:
            looked: etree._Element | None = element
            for tag in condition.below:
                looked = next(looked.iterchildren(qualified(tag)), None) if looked is not None else None
            if (text_at(looked, condition.attribute) == condition.value) is not condition.equal:
                return None
            if looked is not None and (condition.equal or condition.writes):
                proof += ((looked, condition.attribute),)
        return proof

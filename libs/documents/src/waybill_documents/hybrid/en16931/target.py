"""The document that is written: its elements are made where a path says."""

from __future__ import annotations

from dataclasses import dataclass, field

from lxml import etree

from waybill_documents.hybrid.en16931.model import TermValue
from waybill_documents.hybrid.en16931.paths import Path, PathCondition, PathStep
from waybill_documents.hybrid.en16931.syntaxes import CREDIT_NOTE_ROOT, Syntax, qualified, text_at


@dataclass(slots=True)
class TermTarget:
    """A document in one of the syntaxes, while it is written."""

    root: etree._Element
    syntax: Syntax
    currency: str
    lost: list[TermValue] = field(default_factory=list)
    """Values that this syntax has no place for."""

    @property
    def credit_note(self) -> bool:
        """Whether it is a UBL CreditNote."""
        return self.root.tag == CREDIT_NOTE_ROOT

    def place(self, context: etree._Element, path: Path, *, new: bool = True) -> etree._Element:
        """The element at a path. What is above it is shared with other terms, unless the path says otherwise."""
        element = context
        for index, step in enumerate(path.steps):
            last = index == len(path.steps) - 1
            existing = None if step.own or (last and new) else self._existing(element, step)
            element = existing if existing is not None else self._made(element, step)
        return element

    def all_at(self, context: etree._Element, path: Path) -> list[etree._Element]:
        """The elements that were made at a path without conditions."""
        found = [context]
        for step in path.steps:
            found = [child for one in found for child in one.iterchildren(self._qualified(step.tag))]
        return found

    def _qualified(self, tag: str) -> str:
        return qualified(tag, credit_note=self.credit_note)

    def _existing(self, context: etree._Element, step: PathStep) -> etree._Element | None:
        for child in context.iterchildren(self._qualified(step.tag)):
            if all(_holds(child, condition) for condition in step.conditions):
                return child
        return None

    def _made(self, context: etree._Element, step: PathStep) -> etree._Element:
        element = etree.SubElement(context, self._qualified(step.tag))
        for condition in step.conditions:
            if condition.writes:
                _make_true(element, condition)
        return element


def _holds(element: etree._Element, condition: PathCondition) -> bool:
    looked: etree._Element | None = element
    for tag in condition.below:
        looked = next(looked.iterchildren(qualified(tag)), None) if looked is not None else None
    return (text_at(looked, condition.attribute) == condition.value) is condition.equal


def _make_true(element: etree._Element, condition: PathCondition) -> None:
    for tag in condition.below:
        element = etree.SubElement(element, qualified(tag))
    if condition.attribute:
        element.set(condition.attribute, condition.writes)
    else:
        element.text = condition.writes

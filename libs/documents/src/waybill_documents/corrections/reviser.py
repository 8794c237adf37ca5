"""Makes the next record from the one before: reads what was typed, replaces the values, and checks everything again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from waybill_documents.checks import CheckResult
from waybill_documents.corrections.changes import CORRECTED, Change, Plain, Typed
from waybill_documents.corrections.open_findings import restore, standing
from waybill_documents.corrections.records import findings_of, part, places_of, read_values
from waybill_documents.corrections.scalars import scalar
from waybill_documents.corrections.targets import Target, is_computed, target
from waybill_documents.corrections.typed_texts import TypedTextRefused, read_typed
from waybill_documents.extraction import Extraction
from waybill_documents.faults import FaultCode, Finding, MappingFault
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import Mapping
from waybill_documents.messages import DocumentMessage
from waybill_documents.provenance import plain
from waybill_documents.reading import Reading, judged
from waybill_documents.search_areas import Looked
from waybill_documents.stages import Stages
from waybill_documents.values import Extracted, Scalar, Value


@dataclass(frozen=True, slots=True)
class RevisedReading:
    """The next reading, the changes that lead to it, and findings for typed texts that were refused."""

    reading: Reading
    changes: list[Change]
    refused: list[Finding]


def revise(loaded: LoadedMapping, record: dict[str, Any], typed: Sequence[Typed]) -> RevisedReading:
    """Correct a record by what a person typed. The record is not changed; `reading.to_json()` is the next one.

    A text that cannot be read, or whose path names no value that was read, is refused and changes nothing; the others
    are applied. If two texts have the same path, the last one counts. A corrected value keeps its places; its `raw` is
    the typed text, its rule is `corrected`, and its confidence is 100 unless a check fails. Raises `MappingFault` if
    the record was not made by this mapping.
    """
    draft = _Draft(loaded, record)
    changes: list[Change] = []
    refused: list[Finding] = []
    for path, text in dict(typed).items():
        try:
            change = draft.typed(path, text)
        except TypedTextRefused as refusal:
            refused.append(refusal.finding)
        else:
            changes += [change] if change is not None else []
    return RevisedReading(draft.finished(), changes, refused)


def apply(loaded: LoadedMapping, record: dict[str, Any], changes: Iterable[Change]) -> Reading:
    """Replay the changes of a revision on the record before it. Typed texts are not read again.

    Raises `MappingFault` for a change whose path does not exist, or whose old value is not the one in the record.
    """
    draft = _Draft(loaded, record)
    for change in changes:
        draft.replay(change)
    return draft.finished()


class _Draft:
    """A record that is being corrected."""

    def __init__(self, loaded: LoadedMapping, record: dict[str, Any]) -> None:
        self._loaded = loaded
        self._record = record
        self._mapping: Mapping = loaded.mapping
        self._locale: LocaleRules = locale_rules(loaded.mapping.locale)
        self._extracted: Extracted = read_values(loaded, record)
        self._findings = findings_of(record.get("findings"))
        self._corrected: set[str] = set()
        if self._mapping.embedded is None:
            restore(self._mapping, self._extracted, self._locale)

    def typed(self, path: str, text: str) -> Change | None:
        """The change that a text makes; None if the value is the same as before. Raises `TypedTextRefused`."""
        found = target(self._mapping, self._extracted, path)
        if found is None:
            raise TypedTextRefused(self._no_target(path))
        value = read_typed(found, text, self._locale)
        before = found.value(self._extracted).value
        if value == before:
            return None
        self._put(found, value, text)
        return Change(path, _plain(before), _plain(value), found.where, text)

    def replay(self, change: Change) -> None:
        found = target(self._mapping, self._extracted, change.path)
        if found is None:
            raise MappingFault(DocumentMessage("record.nothing_to_correct"), change.path)
        if _plain(found.value(self._extracted).value) != change.before:
            raise MappingFault(DocumentMessage("record.other_value"), change.path)
        value = scalar(change.after, found.rule.type if found.rule is not None else "text", change.path)
        self._put(found, value, change.typed)

    def finished(self) -> Reading:
        reading = self._read_again()
        recognition = self._record.get("recognition")
        reading.recognition = recognition if isinstance(recognition, dict) else None
        return reading

    def _read_again(self) -> Reading:
        source = part(self._record, "source", dict)
        if self._mapping.embedded is not None:
            checks = [_check(each) for each in part(self._record, "checks", list)]
            return Reading(self._loaded, source, self._extracted, checks, self._findings)
        found = standing(self._mapping, self._extracted, self._findings, self._corrected, self._locale)
        extraction = Extraction(self._extracted, found, [], self._looked())
        return judged(self._loaded, extraction, source, Stages(lambda: 0.0))

    def _put(self, found: Target, value: Scalar, text: str) -> None:
        before = found.value(self._extracted)
        found.put(self._extracted, Value(value, text.strip(), CORRECTED, before.places))
        self._corrected.add(found.path)

    def _looked(self) -> Looked:
        return {path: places_of(places, path) for path, places in part(self._record, "looked", dict).items()}

    def _no_target(self, path: str) -> Finding:
        if self._mapping.embedded is not None:
            message = DocumentMessage("correction.embedded", path=path[:100])
        elif is_computed(self._mapping, path):
            message = DocumentMessage("correction.computed", path=path[:100])
        else:
            message = DocumentMessage("correction.unknown", path=path[:100])
        return Finding(FaultCode.BAD_VALUE, message, path)


def _plain(value: Scalar) -> Plain:
    made = plain(value)
    return made if not isinstance(made, bool) else str(made)


def _check(given: Any) -> CheckResult:
    """A check of an embedded invoice. It is not run again, because no value of such an invoice can be corrected."""
    values = tuple(str(path) for path in part(given, "values", list))
    found = tuple(findings_of(given.get("findings")))
    return CheckResult(str(given.get("name")), given.get("passed"), given.get("required") is True, found, values)

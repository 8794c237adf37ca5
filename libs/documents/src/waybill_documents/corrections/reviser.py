"""From one record to the next: what was typed is read, put in the place of what was read, and judged anew."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from waybill_documents.checks import CheckResult
from waybill_documents.conversion import Reading, judged
from waybill_documents.corrections.changes import CORRECTED, Change, Plain, Typed
from waybill_documents.corrections.open_findings import restore, standing
from waybill_documents.corrections.records import findings_of, part, places_of, read_values
from waybill_documents.corrections.scalars import scalar
from waybill_documents.corrections.targets import Target, is_computed, target
from waybill_documents.corrections.typed_texts import Refused, read_typed
from waybill_documents.extraction import Extraction
from waybill_documents.faults import FaultCode, Finding, MappingFault
from waybill_documents.locales import LocaleRules, locale_rules
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import Mapping
from waybill_documents.provenance import plain
from waybill_documents.search_areas import Looked
from waybill_documents.stages import Stages
from waybill_documents.values import Extracted, Scalar, Value


@dataclass(frozen=True, slots=True)
class Revised:
    """The next reading, how it differs from the one before, and what of that which was typed cannot be taken."""

    reading: Reading
    changes: list[Change]
    refused: list[Finding]


def revise(loaded: LoadedMapping, record: dict[str, Any], typed: Sequence[Typed]) -> Revised:
    """Correct a record by what was typed. The record stays as it is; `reading.to_json()` is the next one.

    What cannot be read, or names nothing that was read, is refused and changes nothing; the rest is applied. Of two
    texts for one path the last counts. A corrected value keeps its places; its `raw` is what was typed, its rule
    `corrected`, its confidence 100 until a check doubts it. Raises `MappingFault` for a record that is not of this
    mapping.
    """
    draft = _Draft(loaded, record)
    changes: list[Change] = []
    refused: list[Finding] = []
    for path, text in dict(typed).items():
        try:
            change = draft.typed(path, text)
        except Refused as refusal:
            refused.append(refusal.finding)
        else:
            changes += [change] if change is not None else []
    return Revised(draft.finished(), changes, refused)


def apply(loaded: LoadedMapping, record: dict[str, Any], changes: Iterable[Change]) -> Reading:
    """Replay the changes of a revision on the record before it; nothing that was typed is read again.

    Raises `MappingFault` for a change that does not fit: its path is not there, or it changes another value.
    """
    draft = _Draft(loaded, record)
    for change in changes:
        draft.replay(change)
    return draft.finished()


class _Draft:
    """A record on its way to the next one."""

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
        """The change that a text makes; None if it says what is there already. Raises `Refused`."""
        found = target(self._mapping, self._extracted, path)
        if found is None:
            raise Refused(self._no_target(path))
        value = read_typed(found, text, self._locale)
        before = found.value(self._extracted).value
        if value == before:
            return None
        self._put(found, value, text)
        return Change(path, _plain(before), _plain(value), found.where, text)

    def replay(self, change: Change) -> None:
        found = target(self._mapping, self._extracted, change.path)
        if found is None:
            raise MappingFault("there is nothing that could be changed", change.path)
        if _plain(found.value(self._extracted).value) != change.before:
            raise MappingFault("the change was made to another value", change.path)
        value = scalar(change.after, found.rule.type if found.rule is not None else "text", change.path)
        self._put(found, value, change.typed)

    def finished(self) -> Reading:
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
            kind, why = "embedded", "the values of an embedded invoice are its sender's and cannot be corrected"
        elif is_computed(self._mapping, path):
            kind, why = "computed", "this value is computed from others: correct those"
        else:
            kind, why = "unknown", "there is no such value in this document"
        return Finding(FaultCode.BAD_VALUE, f"{path[:100]}: {why}", path, params={"kind": kind, "path": path[:100]})


def _plain(value: Scalar) -> Plain:
    made = plain(value)
    return made if not isinstance(made, bool) else str(made)


def _check(given: Any) -> CheckResult:
    """A check of an embedded invoice, which is not run again: nothing of it can be corrected."""
    values = tuple(str(path) for path in part(given, "values", list))
    found = tuple(findings_of(given.get("findings")))
    return CheckResult(str(given.get("name")), given.get("passed"), given.get("required") is True, found, values)

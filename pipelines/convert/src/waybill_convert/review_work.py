"""What is computed about records. These functions run in the side processes of `review_desk`.

They take and return what can be pickled, and keep nothing but the mappings they have loaded.
"""

from __future__ import annotations

import gc
import json
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from waybill.errors import NotFound, Refused
from waybill.messages import msg
from waybill_convert.amounts import amounts_of
from waybill_convert.differences import ChangedValue, differences, moved
from waybill_convert.reviser import MappingReviser
from waybill_convert.revision_models import Difference, Json, Typed, Unfit
from waybill_documents.mapping_files import MappingFiles


class Preview(NamedTuple):
    """What a correction would change."""

    changes: list[Json]
    refused: list[Json]
    findings: list[Json]
    checks: list[Json]
    moved: list[ChangedValue]


class NextRevision(NamedTuple):
    """A revision that is ready to be stored."""

    changes: list[Json]
    findings: list[Json]
    xml: bytes
    record: bytes
    amounts: Json | None
    """The document's amounts, as corrected."""


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the garbage collector, which would look through a long record dozens of times and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@_uncollected()
def preview(content: bytes, files: MappingFiles | None, typed: Sequence[Typed]) -> Preview:
    before = loaded(content)
    revised = reviser_of(files).revise(before, typed)
    return Preview(revised.changes, revised.refused, revised.findings, revised.checks, moved(before, revised.extracted))


@_uncollected()
def correct(
    content: bytes, files: MappingFiles | None, typed: Sequence[Typed], accepted: list[Json] | None, accept: bool
) -> NextRevision:
    """The next revision. Unfit if a value cannot be read, or if something is wrong and that is not accepted."""
    revised = reviser_of(files).revise(loaded(content), typed)
    if revised.refused:
        raise Unfit(_sentence(revised.refused), refused=revised.refused, findings=revised.findings)
    if not revised.changes and revised.findings == (accepted or []):
        raise Refused(msg("convert.review.unchanged"))
    if revised.findings and not accept:
        raise Unfit(_sentence(revised.findings), findings=revised.findings)
    record = json.dumps(revised.record, ensure_ascii=False, separators=(",", ":")).encode()
    amounts = amounts_of(revised.record)
    return NextRevision(revised.changes, revised.findings, revised.xml(), record, amounts)


def compare(before: bytes, after: bytes) -> list[Difference]:
    return differences(loaded(before), loaded(after))


def attachments_of(content: bytes, number: int | None) -> list[Json]:
    """The embedded files that a record lists: all of them, or the one with a number. NotFound if it has no such one."""
    listed = loaded(content).get("source", {}).get("attachments", ())
    found = [each for each in listed if number is None or each["number"] == number]
    if number is not None and not found:
        raise NotFound(msg("convert.attachments.none"))
    return found


def loaded(content: bytes) -> Json:
    """A record. NotFound if the file is none, as with results of handlers that are not ours."""
    record: Any = json.loads(content)
    if not {"mapping", "data", "provenance"} <= record.keys():
        raise NotFound(msg("convert.review.no_record"))
    return record  # type: ignore[no-any-return]


_shipped = MappingReviser()
_revisers: OrderedDict[str, MappingReviser] = OrderedDict()
_MOST_REVISERS = 32


def reviser_of(files: MappingFiles | None) -> MappingReviser:
    """The reviser with these files. The last ones are kept, because a mapping takes longer to load than to use."""
    if files is None:
        return _shipped
    reviser = _revisers.setdefault(files.identity, MappingReviser(files))
    _revisers.move_to_end(files.identity)
    if len(_revisers) > _MOST_REVISERS:
        _revisers.popitem(last=False)
    return reviser


def _sentence(findings: Sequence[Json]) -> str:
    first, *others = findings
    return f"{first['message']}{f' (and {len(others)} more)' if others else ''}"

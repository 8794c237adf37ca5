"""Which values of a result are in doubt, so that a person has to look first. Pure: records and numbers.

A value is in doubt if it is essential and its confidence is below the conversion's threshold. The mapping's language
says which values are essential (`docs/mappings.md`); `KnownThresholds` says which threshold applies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from waybill_convert.revision_models import Json

EVERY_MAPPING = ""
"""In a tenant's thresholds: all mappings that are not named."""
_MOST_NAMED = 20
"""How many values a job names. The record names all of them."""


@dataclass(frozen=True, slots=True)
class KnownThresholds:
    """The thresholds that are set for a job's tenant, and the one for everybody. 0 is never."""

    default: int = 0
    of_tenant: Mapping[str, int] = field(default_factory=dict)
    """By the name of the mapping, or for `EVERY_MAPPING`."""

    def below(self, mapping: str, own: int | None) -> int:
        """The threshold for a mapping that brings its `own`, or None. What is said more closely counts more."""
        for found in (self.of_tenant.get(mapping), self.of_tenant.get(EVERY_MAPPING), own):
            if found is not None:
                return found
        return self.default


NEVER = KnownThresholds()


@dataclass(frozen=True, slots=True)
class Doubts:
    """Why a person has to look first."""

    below: int
    """The threshold."""
    paths: list[str]
    """The values in doubt, as in `net` and `lines[213].amount`, in the order of the record."""

    @property
    def sentence(self) -> str:
        """For the job's history."""
        count = len(self.paths)
        are = "value is" if count == 1 else "values are"
        return f"{count} {are} less than {self.below} % sure: a person has to look first"

    def brief(self) -> Json:
        """What the job's row keeps."""
        return {"below": self.below, "count": len(self.paths), "values": self.paths[:_MOST_NAMED]}


def look(record: Json, thresholds: KnownThresholds) -> Doubts | None:
    """What is in doubt, which the record then says, too. None if nobody has to look.

    Raises KeyError, TypeError or AttributeError for what is no record.
    """
    review: Json = record.get("review") or {}
    below = thresholds.below(str((record.get("mapping") or {}).get("name", "")), review.get("below"))
    if not below:
        return None
    found = doubtful(record, below)
    record["review"] = {**review, "below": below, "doubts": found}
    return Doubts(below, found) if found else None


def doubtful(record: Json, below: int) -> list[str]:
    """The essential values with a lower confidence.

    What was not read (a default, an empty or a computed value) counts if a check does not hold for it, and is named
    only if nothing that was read is in doubt: it has the confidence of what it was computed from.
    """
    review: Json = record.get("review") or {}
    essential: Collection[str] | None = frozenset(review["essential"]) if "essential" in review else None
    disproved = frozenset(review.get("disproved") or ())
    low = [
        (path, origin)
        for name, path, origin in _values(record["provenance"])
        if (essential is None or name in essential) and origin["confidence"] < below
    ]
    return [path for path, origin in low if origin["raw"]] or [path for path, _ in low if path in disproved]


def _values(provenance: Json) -> Iterator[tuple[str, str, Any]]:
    """Every value with its name, its path and where it came from: `lines.amount`, `lines[213].amount`."""
    for name, origin in provenance["fields"].items():
        yield name, name, origin
    for table, rows in provenance["tables"].items():
        for index, row in enumerate(rows):
            for column, origin in row.items():
                yield f"{table}.{column}", f"{table}[{index}].{column}", origin

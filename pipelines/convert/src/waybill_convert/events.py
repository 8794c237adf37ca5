"""What this pipeline tells the others, in the transaction in which it happened: see `waybill.changes.publish`."""

from __future__ import annotations

from waybill.storage import Stored

UPLOADED = "convert.uploaded"
"""Somebody uploaded a document, and it became a job. Data: `original_name`, `mapping`."""
COMPLETED = "convert.completed"
"""A job is complete: its result can be downloaded. If a person had to look first, this comes with their approval. Data:
`pages`; without an approval also `amounts` (those of the document, and its currency), `files` (`files_told`)
and `reused` (whether it is a copy of an earlier result)."""
NEEDS_REVIEW = "convert.needs_review"
"""A job has a result, but a person has to look first. Data: `pages`, `below` (the threshold), `count` and `values` (how
many are in doubt, and the paths of the first), `amounts` and `files`."""
APPROVED = "convert.approved"
"""A person looked at such a result and approved it, or saved a correction. Data: `revision`, the one that is the result
from now on, and `by`, who it was."""
CORRECTED = "convert.corrected"
"""A person saved a revision, which is the result from now on. Data: `revision`, its number, and the `amounts` and
`files` that it has."""
EXPIRED = "convert.expired"
"""The result is past its age, and is removed with its revisions. No data."""


def files_told(record: Stored, xml: Stored) -> dict[str, dict[str, object]]:
    """Where the record and the XML of a result lie, for pipelines that hand them out as well."""
    return {name: {"key": one.key, "bytes": one.bytes} for name, one in (("record", record), ("xml", xml))}

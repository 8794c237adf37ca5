"""A submitted file: its job, its result, or what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waybill.console.upload_request import UploadFile

_GOOD = frozenset({"complete", "needs_review"})
_FINAL = _GOOD | {"failed", "cancelled", "expired"}


@dataclass(eq=False)
class Submission:
    file: UploadFile
    job: dict[str, Any] | None = None
    """As the API last returned it."""
    problem: str | None = None
    """Why there is no job, or no result although the job is done."""
    result: Path | None = None
    reused: bool = False

    @property
    def status(self) -> str:
        if self.job is not None:
            return str(self.job["status"])
        return "unsent" if self.problem is None else "refused"

    @property
    def failed(self) -> bool:
        return self.problem is not None or self.job is None or self.status in _FINAL - _GOOD

    @property
    def needs_review(self) -> bool:
        """Whether a person has to look at the result before anybody gets it."""
        return self.problem is None and self.status == "needs_review"

    @property
    def over(self) -> bool:
        return self.problem is not None or self.status in _FINAL

    @property
    def wrong(self) -> list[str]:
        """What is wrong, in a few sentences."""
        if self.problem is not None:
            return [self.problem]
        error = self.job["error"] if self.job else None
        if not error:
            return []
        findings = [finding["message"] for finding in error["findings"] if finding.get("message")]
        return findings[:5] + ([f"and {len(findings) - 5} more"] if len(findings) > 5 else []) or [error["message"]]

    @property
    def recognised(self) -> str:
        """Which mapping the document chose, and why; which ones it might have chosen; empty if it was named."""
        job = self.job or {}  # an API of an earlier release says nothing of it
        if found := job.get("recognition"):
            next_ = found["runner_up"]
            after = f"; next {next_['name']}, score {next_['score']}" if next_ else ""
            return f"recognised as {job['mapping']} ({found['title']}), score {found['score']}{after}"
        near = [f"{each['name']} ({each['score']})" for each in job.get("candidates", [])[:5]]
        return f"nearest mappings: {', '.join(near)}" if near else ""

    def record(self) -> dict[str, Any]:
        return {
            "file": str(self.file.path),
            "job": self.job,
            "reused": self.reused,
            "problem": self.problem,
            "result": str(self.result) if self.result else None,
        }


def target(output: Path, each: Submission, submissions: Sequence[Submission]) -> Path:
    """`invoice.xml` for `invoice.pdf`, with the job's id in it if two files have the same name."""
    stem = each.file.path.stem
    # Some file systems ignore case.
    same = [other for other in submissions if other.file.path.stem.casefold() == stem.casefold()]
    name = f"{stem}-{each.job['id']}.xml" if len(same) > 1 and each.job else f"{stem}.xml"
    return output / name

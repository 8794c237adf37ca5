"""The calls that `waybill submit` makes to the API: upload files, poll jobs, download results."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from waybill.console.api_client import ApiClient, Waiting
from waybill.console.upload_request import Sent, UploadFile, UploadRequest


class SubmitClient(ApiClient):
    """A connection to the API with one key."""

    def upload(
        self,
        files: Sequence[UploadFile],
        *,
        mapping: str | None,
        force: bool,
        sent: Sent,
        waiting: Waiting,
        loss: str | None = None,
    ) -> list[dict[str, Any]]:
        """Upload files in one request. Returns an entry for each in order, with its job or its problem."""
        wanted = {"mapping": mapping, "loss": loss, "force": "true" if force else None}
        fields = {name: value for name, value in wanted.items() if value}
        answer = self.post_files("/api/uploads", UploadRequest("files", files, fields), sent, waiting)
        found = answer.get("files")
        if not isinstance(found, list) or len(found) != len(files):
            raise self.no_waybill()
        return found

    def job(self, job_id: str) -> dict[str, Any]:
        """The current state of a job."""
        return self.look(f"/api/jobs/{job_id}")

    def download(self, job_id: str, target: Path) -> None:
        """Write a job's result to a file. The file is complete or absent."""
        self.save(f"/api/jobs/{job_id}/download", target)

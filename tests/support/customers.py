"""A visitor who uses the API over HTTP: uploads, waits, downloads."""

from __future__ import annotations

from typing import Any

import httpx

from support.patience import eventually

FINAL = ("complete", "failed", "cancelled", "expired")


class Customer:
    """One session, identified by its cookie."""

    def __init__(self, url: str) -> None:
        self.http = httpx.AsyncClient(base_url=url, timeout=30, trust_env=False)

    async def leave(self) -> None:
        await self.http.aclose()

    async def upload(self, name: str, pdf: bytes, **fields: str) -> dict[str, Any]:
        """Upload a document and return its job. Fails if the API refuses it."""
        response = await self.http.post("/api/upload", files={"file": (name, pdf, "application/pdf")}, data=fields)
        assert response.status_code in (200, 201), response.text
        job: dict[str, Any] = response.json()["job"]
        return job

    async def job(self, job_id: str) -> dict[str, Any]:
        response = await self.http.get(f"/api/jobs/{job_id}")
        assert response.status_code == 200, response.text
        job: dict[str, Any] = response.json()
        return job

    async def ended(self, job_id: str, *, within: float = 60.0) -> dict[str, Any]:
        """Wait until the job has ended, in whatever status, and return it."""

        async def over() -> bool:
            return (await self.job(job_id))["status"] in FINAL

        await eventually(over, within=within, every=0.1, what=f"job {job_id} has ended")
        return await self.job(job_id)

    async def download(self, job_id: str) -> bytes:
        response = await self.http.get(f"/api/jobs/{job_id}/download")
        assert response.status_code == 200, response.text
        return response.content

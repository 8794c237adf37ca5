"""An admin sees the jobs of all tenants, changes none of them, and leaves an event with each look."""

from __future__ import annotations

import uuid

import httpx
import pytest

from support.api_server import Api, Converter, pdf, uploaded
from waybill.db import Database
from waybill.security import ADMIN

_LOOKS = """
SELECT action, subject, tenant, actor FROM audit_events WHERE action IN ('job.looked_at', 'jobs.listed') ORDER BY id
"""


async def _looks(db: Database) -> list[tuple[str, str, str | None, str]]:
    async with db.hot() as connection:
        return [tuple(row) for row in await connection.fetch(_LOOKS)]


@pytest.fixture
async def admin(api: Api) -> httpx.AsyncClient:
    return api.client(key=await api.key("operators", ADMIN))


async def test_an_admin_reads_a_foreign_job_and_each_look_is_recorded(
    api: Api, admin: httpx.AsyncClient, converter: Converter, db: Database
) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    await converter.finish_all(b"<theirs/>")
    paths = ["", "/events", "/explain", "/download", "/provenance", "/revisions", "/revisions/0"]
    for path in paths:
        answer = await admin.get(f"/api/jobs/{job}{path}")
        assert answer.status_code == 200, (path, answer.text)
    assert await _looks(db) == [("job.looked_at", f"job:{job}", "acme", "tenant:operators")] * len(paths)
    assert (await admin.get(f"/api/jobs/{job}/download")).text == "<theirs/>"
    links = (await admin.get(f"/api/jobs/{job}")).json()["links"]
    assert (links["retry"], links["cancel"], links["pin"]) == (None, None, None)
    assert links["download"] is not None
    async with db.hot() as connection:
        downloaded = await connection.fetchval(
            "SELECT downloaded_at FROM conversions WHERE job_id = $1", uuid.UUID(job)
        )
    assert downloaded is None, "a look is no download: it must not let the result expire"


async def test_a_look_at_what_is_ones_own_or_nobodys_is_not_worth_an_event(
    admin: httpx.AsyncClient, db: Database
) -> None:
    own = await uploaded(admin)
    job = (await admin.get(f"/api/jobs/{own}")).json()
    assert job["links"]["cancel"] is not None
    assert (await admin.get(f"/api/jobs/{uuid.uuid4()}")).status_code == 404
    assert await _looks(db) == []


async def test_an_admin_changes_nothing_of_other_tenants(api: Api, admin: httpx.AsyncClient, db: Database) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    for method, path in (
        ("POST", "/cancel"),
        ("POST", "/retry"),
        ("POST", "/pin"),
        ("DELETE", "/pin"),
        ("DELETE", ""),
    ):
        assert (await admin.request(method, f"/api/jobs/{job}{path}")).status_code == 404, path
    correction = {"base": 0, "changes": [{"path": "net", "value": "1"}]}
    assert (await admin.post(f"/api/jobs/{job}/revisions", json=correction)).status_code == 404
    async with db.hot() as connection:
        assert await connection.fetchval("SELECT state FROM jobs WHERE id = $1", uuid.UUID(job)) == "queued"


async def test_all_tenants_jobs_are_listed_in_pages_with_whose_they_are(
    api: Api, admin: httpx.AsyncClient, db: Database
) -> None:
    acme, other, browser = (
        api.client(key=await api.key("acme")),
        api.client(key=await api.key("b")),
        await api.browser(),
    )
    jobs = [await uploaded(client, pdf(str(n))) for n, client in enumerate((acme, other, browser, acme))]
    answer = (await admin.get("/api/admin/jobs")).json()
    assert [job["id"] for job in answer["jobs"]] == jobs[::-1]
    assert [job["tenant"] for job in answer["jobs"]] == ["acme", "public", "b", "acme"]
    assert answer["jobs"][1]["owner"].startswith("session:")
    assert answer["next"] is None
    first = (await admin.get("/api/admin/jobs", params={"limit": 3})).json()
    rest = (await admin.get("/api/admin/jobs", params={"limit": 3, "cursor": first["next"]})).json()
    assert [job["id"] for job in (*first["jobs"], *rest["jobs"])] == jobs[::-1]
    of_acme = (await admin.get("/api/admin/jobs", params={"tenant": "acme", "status": "queued"})).json()
    assert [job["id"] for job in of_acme["jobs"]] == [jobs[3], jobs[0]]
    assert (await admin.get("/api/admin/jobs", params={"status": "failed"})).json() == {"jobs": [], "next": None}
    looks = await _looks(db)
    assert [look[0] for look in looks] == ["jobs.listed"] * 5
    assert [look[2] for look in looks] == [None, None, None, "acme", None]


async def test_nobody_else_gets_in(api: Api) -> None:
    reader = api.client(key=await api.key("acme"))
    for client in (reader, api.client(), await api.browser()):
        for path in ("/api/admin/jobs", "/api/audit", "/ops", f"/ops/jobs/{uuid.uuid4()}"):
            assert (await client.get(path)).status_code == 403, path

"""What an admin sees after signing in: everything that is there, whoever's it is."""

from __future__ import annotations

from support.api_server import Api, uploaded
from waybill.db import Database
from waybill.security import ADMIN
from waybill_engine import breaker_control, control


async def test_signing_in_with_an_admin_key_leads_to_the_jobs_of_all_tenants(api: Api, db: Database) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    async with db.hot() as connection:
        await control.pause(connection, "convert", "too <hot>")
        await breaker_control.trip(connection, "gateway", "maintenance")
    browser = await api.browser()
    signed_in = await browser.post("/session", data={"key": await api.key("operators", ADMIN)})
    assert (signed_in.status_code, signed_in.headers["location"]) == (303, "/ops")
    page = await browser.get("/ops")
    assert page.status_code == 200
    for seen in (job, "acme", "too &lt;hot&gt;", "maintenance", "session.started", "queue.paused", 'href="/ops"'):
        assert seen in page.text, seen
    filtered = await browser.get("/ops", params={"tenant": "acme", "state": ""})  # as the form sends it
    assert job in filtered.text
    assert 'name="tenant" value="acme"' in filtered.text
    assert job in (await browser.get("/ops", params={"tenant": "acme", "state": "queued"})).text
    assert job not in (await browser.get("/ops", params={"tenant": "acme", "state": "failed"})).text
    assert job not in (await browser.get("/ops", params={"tenant": "somebody"})).text

    one = await browser.get(f"/ops/jobs/{job}")
    assert one.status_code == 200
    assert "convert_pdf" in one.text
    assert "paused" in one.text, "why it does not run"
    async with db.hot() as connection:
        looks = await connection.fetch(
            "SELECT action, tenant FROM audit_events WHERE detail ->> 'page' = '/ops' ORDER BY id"
        )
    assert [tuple(look) for look in looks] == [
        ("jobs.listed", None),
        ("jobs.listed", "acme"),
        ("jobs.listed", "acme"),
        ("jobs.listed", "acme"),
        ("jobs.listed", "somebody"),
        ("job.looked_at", "acme"),
    ]


async def test_everybody_else_lands_where_their_documents_are(api: Api) -> None:
    browser = await api.browser()
    signed_in = await browser.post("/session", data={"key": await api.key("acme")})
    assert signed_in.headers["location"] == "/queue"
    assert 'href="/ops"' not in (await browser.get("/queue")).text


async def test_the_page_has_the_readers_language_and_older_jobs(api: Api) -> None:
    admin = api.client(key=await api.key("operators", ADMIN), headers={"Accept-Language": "id"})
    assert "Pekerjaan semua tenant" in (await admin.get("/ops")).text
    missing = await admin.get("/ops/jobs/019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b")
    assert missing.status_code == 404

"""What an admin sees after signing in: whether everything is well, and everything that is there, whoever's it is."""

from __future__ import annotations

import httpx
import pytest

from support.api_server import Api, uploaded
from support.busy_system import a_thousand_kinds
from support.engine import one_job, start_worker
from waybill.db import Database
from waybill.security import ADMIN
from waybill_engine import breaker, breaker_control, control
from waybill_engine.samples import take_if_due

LIVE = {"HX-Request": "true"}


async def signed_in(api: Api) -> httpx.AsyncClient:
    browser = await api.browser()
    answer = await browser.post("/session", data={"key": await api.key("operators", ADMIN)})
    assert (answer.status_code, answer.headers["location"]) == (303, "/ops")
    return browser


async def looks(db: Database) -> list[tuple[str, str | None]]:
    async with db.hot() as connection:
        rows = await connection.fetch(
            "SELECT action, tenant FROM audit_events WHERE detail ->> 'page' = '/ops' ORDER BY id"
        )
    return [tuple(row) for row in rows]


async def test_signing_in_with_an_admin_key_leads_to_the_jobs_of_all_tenants(api: Api, db: Database) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    async with db.hot() as connection:
        await start_worker(connection, queues=["convert"], kinds=["convert_pdf"])
        await control.pause(connection, "convert", "too <hot>")
        await breaker_control.trip(connection, "gateway", "maintenance")
        assert await take_if_due(connection, 0.0)
    browser = await signed_in(api)
    page = await browser.get("/ops")
    assert page.status_code == 200
    for seen in (job, "acme", "too &lt;hot&gt;", "maintenance", "session.started", "queue.paused", 'href="/ops"'):
        assert seen in page.text, seen
    assert "gateway was switched off by hand" in page.text
    assert "The queue convert is paused" in page.text
    assert page.text.count('role="img"') == 3, "three plots"
    filtered = await browser.get("/ops", params={"tenant": "acme", "state": "", "kind": ""})  # as the form sends it
    assert job in filtered.text
    assert 'name="tenant" value="acme"' in filtered.text
    listed = f'name="job" value="{job}"', f'href="/ops/jobs/{job}">{job}'
    assert listed[1] in (await browser.get("/ops", params={"tenant": "acme", "state": "queued"})).text
    assert listed[1] not in (await browser.get("/ops", params={"tenant": "acme", "state": "failed"})).text
    assert listed[1] not in (await browser.get("/ops", params={"tenant": "somebody"})).text
    assert listed[1] not in (await browser.get("/ops", params={"kind": "other"})).text
    found = await browser.get("/ops/jobs", params={"id": job[:23]})
    assert (found.status_code, found.headers["location"]) == (303, f"/ops/jobs/{job}")

    one = await browser.get(f"/ops/jobs/{job}")
    assert one.status_code == 200
    assert "convert_pdf" in one.text
    assert "paused" in one.text, "why it does not run"
    assert await looks(db) == [
        ("jobs.listed", None),
        ("jobs.listed", "acme"),
        ("jobs.listed", "acme"),
        ("jobs.listed", "acme"),
        ("jobs.listed", "somebody"),
        ("jobs.listed", None),
        ("job.looked_at", "acme"),
    ]


async def test_an_open_page_asks_for_what_changes_and_is_recorded_once(api: Api, db: Database) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    browser = await signed_in(api)
    for _ in range(3):
        part = await browser.get("/ops", headers=LIVE)
        assert part.status_code == 200
        assert "<html" not in part.text
        assert 'id="ops-health"' in part.text
        assert "HX-Request" in part.headers["vary"]
        assert 'id="job-life"' in (await browser.get(f"/ops/jobs/{job}", headers=LIVE)).text
    assert await looks(db) == [("jobs.listed", None), ("job.looked_at", "acme")]


async def test_without_a_worker_the_page_says_so_first(api: Api) -> None:
    page = await (await signed_in(api)).get("/ops")
    verdict = page.text.split('class="verdict">')[1]
    assert verdict.startswith("No worker is running, and 0 jobs wait.")


async def test_everybody_else_lands_where_their_documents_are_and_may_neither_see_nor_act(api: Api) -> None:
    browser = await api.browser()
    answer = await browser.post("/session", data={"key": await api.key("acme")})
    assert answer.headers["location"] == "/queue"
    assert 'href="/ops"' not in (await browser.get("/queue")).text
    job = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"
    for path in ("/ops", "/ops/jobs?id=019a8b2c", f"/ops/jobs/{job}"):
        assert (await browser.get(path)).status_code == 403, path
    for path in (
        "/ops/queues/convert/pause",
        "/ops/queues/convert/resume",
        "/ops/breakers/gateway/trip",
        "/ops/breakers/gateway/reset",
        "/ops/retry",
        f"/ops/jobs/{job}/retry",
        f"/ops/jobs/{job}/cancel",
    ):
        assert (await browser.post(path)).status_code == 403, path


async def test_the_page_has_the_readers_language(api: Api) -> None:
    admin = api.client(key=await api.key("operators", ADMIN), headers={"Accept-Language": "id"})
    assert "Pekerjaan semua tenant" in (await admin.get("/ops")).text


async def test_ids_that_are_not_there_are_not_found(api: Api) -> None:
    admin = api.client(key=await api.key("operators", ADMIN))
    for path in (
        "/ops/jobs/019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b",
        "/ops/jobs?id=019a8b2c",
        "/ops/jobs?id=nonsense",
        "/ops/jobs?id=",
    ):
        assert (await admin.get(path)).status_code == 404, path


async def test_a_job_with_a_long_history_shows_the_end_of_it(api: Api, db: Database) -> None:
    """A job that was snoozed every few seconds for days has more runs than a page can draw."""
    async with db.hot() as connection:
        job = await one_job(connection)
        await connection.execute(
            """
            INSERT INTO job_events (job_id, at, event, lease_token, started_at)
            SELECT $1, now() + n * interval '10 s', 'snoozed', n, now() + n * interval '10 s' - interval '1 s'
              FROM generate_series(1, 5000) AS n
            """,
            job,
        )
        browser = await signed_in(api)
        page = (await browser.get(f"/ops/jobs/{job}")).text
    assert "Only the newest 200 events are shown." in page
    assert "Run 5,000" in page or "Run 5000" in page
    assert page.count('class="run"') == 200


async def test_a_breaker_that_a_job_waits_for_is_in_its_life_and_in_its_history(api: Api, db: Database) -> None:
    job = await uploaded(api.client(key=await api.key("acme")))
    async with db.hot() as connection:
        await breaker.register_kinds(connection, {"convert_pdf": ["gateway"]})
        await breaker_control.trip(connection, "gateway", "maintenance <until six>")
    browser = await signed_in(api)
    page = (await browser.get(f"/ops/jobs/{job}")).text
    assert "Waited for the breaker of gateway" in page
    assert "breaker tripped by hand" in page
    assert "maintenance &lt;until six&gt;" in page


@pytest.mark.parametrize(
    "detail", ["[]", '["a"]', '"text"', "5", "null", '{"key": 5, "params": [1]}', '{"key": null, "params": "x"}']
)
async def test_a_job_whose_details_were_written_by_hand_has_its_page(api: Api, db: Database, detail: str) -> None:
    async with db.hot() as connection:
        job = await one_job(connection)
        await connection.execute(
            """
            UPDATE jobs SET state = 'failed', finished_at = now(), error_code = 'GW_5XX', error_message = 'It broke.',
                   error_detail = $2::jsonb WHERE id = $1
            """,
            job,
            detail,
        )
        await connection.execute(
            """
            INSERT INTO job_events (job_id, event, lease_token, started_at, detail)
            VALUES ($1, 'failed', 1, now(), $2)
            """,
            job,
            detail,
        )
        browser = await signed_in(api)
        answer = await browser.get(f"/ops/jobs/{job}")
    assert answer.status_code == 200
    assert "GW_5XX" in answer.text


@pytest.mark.parametrize("state", ["scheduled", "queued"])
@pytest.mark.parametrize("run_at", ["infinity", "-infinity", "20000-01-01", "4713-01-01 BC", "0001-01-01 BC"])
async def test_a_job_whose_time_was_written_by_hand_has_its_page_and_its_explanation(
    api: Api, db: Database, run_at: str, state: str
) -> None:
    key = await api.key("acme")
    client = api.client(key=key)
    job = await uploaded(client)
    async with db.hot() as connection:
        await connection.execute(
            "UPDATE jobs SET run_at = $2::text::timestamptz, state = $3 WHERE id = $1::text::uuid", job, run_at, state
        )
        assert await take_if_due(connection, 0.0)
        browser = await signed_in(api)
    for answer in (
        await browser.get(f"/ops/jobs/{job}"),
        await browser.get("/ops"),
        await client.get(f"/api/jobs/{job}/explain"),
        await client.get(f"/api/jobs/{job}/events"),
        await client.get(f"/api/jobs/{job}"),
        await client.get("/api/jobs"),
    ):
        assert answer.status_code == 200, (str(answer.request.url), answer.text)


@pytest.mark.parametrize("detail", ['["cause"]', '{"cause": 1}', '{"cause": 1, "key": "no.such", "params": 5}'])
async def test_a_cause_that_was_written_by_hand_is_left_out(api: Api, db: Database, detail: str) -> None:
    async with db.hot() as connection:
        job = await one_job(connection)
        await connection.execute(
            "INSERT INTO job_events (job_id, event, lease_token, detail) VALUES ($1, 'crashed', 0, $2)", job, detail
        )
        browser = await signed_in(api)
        assert (await browser.get(f"/ops/jobs/{job}")).status_code == 200


async def test_a_thousand_kinds_are_bounded_and_those_with_trouble_are_shown(api: Api, db: Database) -> None:
    async with db.hot() as connection:
        await a_thousand_kinds(connection)
        await start_worker(connection, queues=["convert"], kinds=["kind_1", "kind_2"])
    browser = await signed_in(api)
    page = (await browser.get("/ops")).text
    kinds = page[page.index('id="ops-kinds"') : page.index('id="ops-tenants"')]
    assert kinds.count('<th scope="row">') == 50
    assert "kind_777" in kinds, "it has a dead letter"
    assert "and 950 more" in kinds
    assert page.count("No worker serves") <= 12
    assert len(page) < 120_000

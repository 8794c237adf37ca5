"""What an admin does on /ops, as its forms send it: it happens once, is recorded, and the page says so."""

from __future__ import annotations

import uuid

import httpx
import pytest

from support.api_server import Api
from support.engine import OTHER, WORK, one_job, row, running_job, some_jobs, start_worker
from waybill.db import Database
from waybill.db.database import Connection
from waybill.security import ADMIN
from waybill_api.ops import actions
from waybill_engine import breaker


@pytest.fixture
async def admin(api: Api) -> httpx.AsyncClient:
    browser = await api.browser()
    await browser.post("/session", data={"key": await api.key("operators", ADMIN)})
    return browser


async def recorded(connection: Connection, action: str) -> list[tuple[str, str]]:
    rows = await connection.fetch("SELECT actor, subject FROM audit_events WHERE action = $1 ORDER BY id", action)
    return [tuple(each) for each in rows]


async def give_up(connection: Connection, job_ids: list[uuid.UUID], code: str) -> None:
    await connection.execute(
        "UPDATE jobs SET state = 'dead_letter', finished_at = now(), error_code = $2 WHERE id = ANY ($1)", job_ids, code
    )


async def states(connection: Connection) -> dict[tuple[str, str], int]:
    rows = await connection.fetch("SELECT kind, state, count(*) FROM jobs GROUP BY kind, state")
    return {(kind, state): count for kind, state, count in rows}


async def test_a_queue_is_paused_with_a_reason_and_resumed(admin: httpx.AsyncClient, db: Database) -> None:
    async with db.hot() as connection:
        await start_worker(connection, queues=["default"])
        answer = await admin.post("/ops/queues/default/pause", data={"reason": " The printer\n is <hot>. "})
        assert (answer.status_code, answer.headers["location"]) == (303, "/ops?did=paused&name=default#ops-queues")
        page = (await admin.get(answer.headers["location"])).text
        assert "The queue default is paused." in page
        assert "The printer is &lt;hot&gt;." in page
        assert 'action="/ops/queues/default/resume"' in page

        again = await admin.post("/ops/queues/default/resume")
        assert again.headers["location"] == "/ops?did=resumed&name=default#ops-queues"
        assert await connection.fetchval("SELECT count(*) FROM queues WHERE paused_at IS NOT NULL") == 0
        twice = await admin.post("/ops/queues/default/resume")
        assert "was_open" in twice.headers["location"]
        assert [subject for _, subject in await recorded(connection, "queue.paused")] == ["queue:default"]
        assert [subject for _, subject in await recorded(connection, "queue.resumed")] == ["queue:default"]
    assert (await admin.post("/ops/queues/nonsense/pause")).status_code == 404


async def test_a_breaker_is_tripped_for_a_while_and_reset(admin: httpx.AsyncClient, db: Database) -> None:
    async with db.hot() as connection:
        await breaker.register_kinds(connection, {"work": ["printer"]})
        answer = await admin.post("/ops/breakers/printer/trip", data={"reason": "paper", "minutes": "30"})
        assert answer.headers["location"] == "/ops?did=tripped&name=printer#ops-breakers"
        found = await connection.fetchrow(
            "SELECT state, reason, open_until > now() + interval '29 minutes' AS long FROM breakers"
        )
        assert found is not None
        assert tuple(found) == ("open", "paper", True)
        assert "printer fails" in (await admin.get("/ops")).text
        assert "did=reset" in (await admin.post("/ops/breakers/printer/reset")).headers["location"]
        assert await connection.fetchval("SELECT state FROM breakers") == "closed"
        assert (
            len(await recorded(connection, "breaker.tripped")) == len(await recorded(connection, "breaker.reset")) == 1
        )
    assert (await admin.post("/ops/breakers/nonsense/trip")).status_code == 404
    assert (await admin.post("/ops/breakers/printer/trip", data={"minutes": "31"})).status_code == 422


async def test_few_dead_letters_of_an_error_are_retried_at_once_and_others_stay(
    admin: httpx.AsyncClient, db: Database
) -> None:
    async with db.hot() as connection:
        await give_up(connection, await some_jobs(connection, 3, WORK), "GW_5XX")
        await give_up(connection, await some_jobs(connection, 2, WORK), "IO_ERROR")
        await give_up(connection, await some_jobs(connection, 1, OTHER), "GW_5XX")
        page = (await admin.get("/ops")).text
        assert 'name="group" value="work|GW_5XX"' in page
        answer = await admin.post("/ops/retry", data={"group": "work|GW_5XX"})
        assert answer.headers["location"] == "/ops?did=retried&jobs=3#ops-dead"
        assert "3 jobs were queued again." in (await admin.get(answer.headers["location"])).text
        assert await states(connection) == {
            ("work", "queued"): 3,
            ("work", "dead_letter"): 2,
            ("other", "dead_letter"): 1,
        }
        ((actor, _),) = await recorded(connection, "jobs.retried")
        assert "operators" in actor


async def test_many_are_retried_only_once_that_is_confirmed(admin: httpx.AsyncClient, db: Database) -> None:
    async with db.hot() as connection:
        await give_up(connection, await some_jobs(connection, 11, WORK), "GW_5XX")
        (single,) = await some_jobs(connection, 1, OTHER)
        await give_up(connection, [single], "TIMEOUT")
        chosen = {"group": "work|GW_5XX", "job": str(single)}
        asked = await admin.post("/ops/retry", data=chosen)
        assert asked.status_code == 200
        assert "Retry 12 jobs?" in asked.text
        assert (await states(connection))["work", "dead_letter"] == 11, "nothing happened yet"
        for field in ('name="group" value="work|GW_5XX"', f'name="job" value="{single}"', 'name="sure" value="yes"'):
            assert field in asked.text
        answer = await admin.post("/ops/retry", data=chosen | {"sure": "yes"})
        assert answer.headers["location"] == "/ops?did=retried&jobs=12#ops-dead"
        assert await states(connection) == {("work", "queued"): 11, ("other", "queued"): 1}


async def test_a_request_stops_in_time_and_says_that_there_are_more(
    admin: httpx.AsyncClient, db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actions, "_SECONDS", -1.0)
    async with db.hot() as connection:
        await give_up(connection, await some_jobs(connection, 501, WORK), "GW_5XX")
        answer = await admin.post("/ops/retry", data={"group": "work|GW_5XX", "sure": "yes"})
        assert answer.headers["location"] == "/ops?did=retried&jobs=500&more=1#ops-dead"
        assert "There are more." in (await admin.get(answer.headers["location"])).text
        assert (await states(connection))["work", "dead_letter"] == 1


async def test_jobs_are_retried_and_cancelled_one_by_one(admin: httpx.AsyncClient, db: Database) -> None:
    async with db.hot() as connection:
        job = await one_job(connection)
        answer = await admin.post(f"/ops/jobs/{job}/cancel")
        assert answer.headers["location"] == f"/ops/jobs/{job}?did=cancelled&jobs=1"
        assert "1 job was cancelled." in (await admin.get(answer.headers["location"])).text
        assert (await row(connection, job))["state"] == "cancelled"
        assert (await admin.post(f"/ops/jobs/{job}/cancel")).status_code == 409
        assert (await admin.post(f"/ops/jobs/{job}/retry")).status_code == 303
        assert (await row(connection, job))["state"] == "queued"
        again = await admin.post("/ops/retry", data={"job": str(job)})
        assert again.headers["location"] == "/ops?did=retried&left=1#ops-dead", "it waits already"
        await admin.post(f"/ops/jobs/{job}/cancel")
        _, claimed = await running_job(connection, OTHER)
        stopping = await admin.post(f"/ops/jobs/{claimed.id}/cancel")
        assert "did=stopping" in stopping.headers["location"]


async def test_nothing_happens_for_other_sites_for_reads_and_for_nonsense(
    admin: httpx.AsyncClient, db: Database
) -> None:
    async with db.hot() as connection:
        job = await one_job(connection)
        await start_worker(connection)
        foreign = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site"}
        for path in ("/ops/queues/default/pause", f"/ops/jobs/{job}/cancel", "/ops/retry"):
            assert (await admin.get(path)).status_code in (404, 405), path
            assert (await admin.post(path, headers=foreign)).status_code == 403, path
        for wrong in ({"job": "1"}, {"group": "work"}, {"group": "a\0|b"}, {"group": "|x"}):
            assert (await admin.post("/ops/retry", data=wrong)).status_code == 422, wrong
        many = await admin.post("/ops/retry", data={"job": [str(uuid.uuid4()) for _ in range(1100)]})
        assert (many.status_code, many.json()["key"]) == (422, "request.too_many_chosen")
        assert "did=nothing" in (await admin.post("/ops/retry", data={})).headers["location"]
        assert (await row(connection, job))["state"] == "queued"
        assert await recorded(connection, "queue.paused") == []
    told = await admin.get("/ops", params={"did": "<script>", "name": "x"})
    assert 'role="status"' not in told.text.split("<main")[1].split('id="live"')[0]
    told = await admin.get("/ops", params={"did": "paused", "name": "<b>"})
    assert "The queue &lt;b&gt; is paused." in told.text

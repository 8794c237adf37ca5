"""Looking at one's jobs: lists, filters, pages, changes; and stepping in."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx

from support.api_server import Api, Converter, pdf, upload, uploaded
from support.clock import Clock
from support.patience import eventually
from waybill.db import Database
from waybill.errors import Code, GatewayUnavailable
from waybill.failures import Failure, classify
from waybill.messages import msg
from waybill_engine.artefacts import artefact_key


async def listed(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get("/api/jobs", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(listing: dict[str, Any]) -> list[str]:
    return [job["id"] for job in listing["jobs"]]


async def test_a_jobs_life_as_its_owner_sees_it(browser: httpx.AsyncClient, converter: Converter, clock: Clock) -> None:
    job = await uploaded(browser)
    self = f"/api/jobs/{job}"
    (lease,) = await converter.take()
    seen = (await browser.get(self)).json()
    assert (seen["status"], seen["attempt"], seen["max_attempts"]) == ("processing", 1, 4)

    await converter.fail(lease, classify(GatewayUnavailable(msg("gateway_call.too_large", megabytes=256))))
    seen = (await browser.get(self)).json()
    assert (seen["status"], seen["attempt"]) == ("queued", 1)
    assert seen["error"] == {
        "code": "GW_5XX",
        "key": "gateway_call.too_large",
        "params": {"megabytes": 256},
        "message": "The converter's answer is larger than 256 MB.",
        "findings": [],
    }
    assert seen["retry_at"] > seen["updated_at"]
    told = (await browser.get(f"{self}/explain")).json()
    assert (told["reason"], told["key"]) == ("scheduled", "explain.retry")
    assert told["params"] == {"run_at": told["facts"]["run_at"], "count": 1}

    await converter.connection.execute("UPDATE jobs SET state = 'queued', run_at = now() WHERE id = $1", job)
    (lease,) = await converter.take()
    detail = {"findings": [{"code": "MISSING", "message": "There is no NPWP."}], "exception": "internal"}
    await converter.fail(
        lease, Failure(Code.GW_4XX, "The converter could not read it.", 422, False, True, None, detail)
    )
    seen = (await browser.get(self)).json()
    assert (seen["status"], seen["dead_letter"], seen["attempt"]) == ("failed", False, 2)
    assert seen["error"] == {
        "code": "GW_4XX",
        "key": None,
        "params": {},
        "message": "The converter could not read it.",
        "findings": [{"code": "MISSING", "message": "There is no NPWP."}],
    }
    assert seen["links"]["retry"] == f"{self}/retry"
    assert "internal" not in (await browser.get(self)).text

    assert (await browser.post(f"{self}/retry")).json()["status"] == "queued"
    assert (await browser.post(f"{self}/retry")).status_code == 409
    (lease,) = await converter.take()
    assert (await browser.delete(self)).status_code == 409, "it runs"
    assert (await browser.post(f"{self}/cancel")).json()["stopping"] is True
    await converter.finish(lease)
    seen = (await browser.get(self)).json()
    assert (seen["status"], seen["progress"], seen["error"]) == ("complete", 1, None)
    assert (await browser.post(f"{self}/cancel")).status_code == 409
    told = [one["event"] for one in (await browser.get(f"{self}/events")).json()["events"]]
    assert told[0] == "enqueued"
    assert [
        one for one in told if one in ("retry_scheduled", "failed", "retried", "cancel_requested", "succeeded")
    ] == [
        "retry_scheduled",
        "failed",
        "retried",
        "cancel_requested",
        "succeeded",
    ]


async def test_retry_needs_the_document(api: Api, browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser)
    await browser.post(f"/api/jobs/{job}/cancel")
    key = await converter.connection.fetchval("SELECT upload_key FROM conversions")
    await api.context.storage.delete(key)
    answer = await browser.post(f"/api/jobs/{job}/retry")
    assert (answer.status_code, answer.json()["code"]) == (404, "EXPIRED")


async def test_what_was_uploaded_again_is_not_tried_again_beside_it(
    browser: httpx.AsyncClient, converter: Converter
) -> None:
    document = pdf()
    first = await uploaded(browser, document)
    await browser.post(f"/api/jobs/{first}/cancel")
    second = await uploaded(browser, document)
    answer = await browser.post(f"/api/jobs/{first}/retry")
    assert (answer.status_code, answer.json()["code"], answer.json()["job_id"]) == (409, "CONFLICT", second)
    await converter.finish_all()
    assert (await browser.post(f"/api/jobs/{first}/retry")).json()["job_id"] == second, "it is done"
    forced = await uploaded(browser, document, force="true")
    await browser.post(f"/api/jobs/{forced}/cancel")
    assert (await browser.post(f"/api/jobs/{forced}/retry")).status_code == 200, "that is what force was for"


async def test_deleting_takes_everything_along(
    api: Api, browser: httpx.AsyncClient, converter: Converter, folder: Any
) -> None:
    done, waiting = await uploaded(browser), await uploaded(browser, force="true")
    (lease, _) = sorted(await converter.take(2), key=lambda one: str(one.id) != done)
    await converter.finish(lease)
    await converter.connection.execute("UPDATE jobs SET state = 'queued', lease_owner = NULL WHERE id = $1", waiting)
    for job in (done, waiting):  # of runs that lost their lease before they could publish
        await converter.storage.put(artefact_key(uuid.UUID(job), 99, lease.worker_id, "xml"), b"<stale/>")
    since = (await listed(browser))["since"]
    for job in (done, waiting):
        assert (await browser.delete(f"/api/jobs/{job}")).status_code == 204
        assert (await browser.delete(f"/api/jobs/{job}")).status_code == 404
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    after = await listed(browser, since=since)
    assert (after["jobs"], sorted(after["deleted"])) == ([], sorted([done, waiting]))
    assert after["counts"]["total"] == 0
    left = await converter.connection.fetchval("SELECT (SELECT count(*) FROM jobs) + (SELECT count(*) FROM job_events)")
    assert left == 0
    assert await converter.connection.fetchval("SELECT max(original_name) FROM conversions") == ""


async def test_pages_go_on_where_they_ended(browser: httpx.AsyncClient) -> None:
    jobs = [await uploaded(browser) for _ in range(7)][::-1]
    first = await listed(browser, limit=3)
    second = await listed(browser, limit=3, cursor=first["next"])
    third = await listed(browser, limit=3, cursor=second["next"])
    assert ids(first) + ids(second) + ids(third) == jobs
    assert third["next"] is None
    assert first["counts"]["total"] == first["active_count"] == 7
    for nonsense in ("x", "cDE", "!", "czE", "p" * 100):
        assert (await browser.get("/api/jobs", params={"cursor": nonsense})).status_code == 422
    for nonsense in ("x", "yesterday", "cDE", "0001-01-01T00:00:00", "9999-12-31"):
        assert (await browser.get("/api/jobs", params={"since": nonsense})).status_code == 422, nonsense


async def test_filters_and_search(api: Api, browser: httpx.AsyncClient, converter: Converter) -> None:
    for name in ("Alpha_1.pdf", "beta 100%.pdf", "alpha.pdf"):
        assert (await upload(browser, name=name)).status_code == 201
    third, second, first = ids(await listed(browser))
    await browser.post(f"/api/jobs/{second}/cancel")
    await converter.take(1)
    await api.heard()
    assert ids(await listed(browser, status="cancelled")) == [second]
    assert ids(await listed(browser, status=["cancelled", "queued", "processing"])) == [third, second, first]
    assert ids(await listed(browser, q="ALPHA")) == [third, first]
    assert ids(await listed(browser, q="alpha_")) == [first], "an underscore is one"
    assert ids(await listed(browser, q="100%")) == [second]
    assert ids(await listed(browser, q=first[:20])) in ([first], [third, second, first])
    assert ids(await listed(browser, q=first)) == [first]
    assert ids(await listed(browser, q="alpha", status="cancelled")) == []
    assert (await browser.get("/api/jobs?status=lost")).status_code == 422
    assert (await browser.get("/api/jobs?q=%00")).status_code == 422
    counts = (await listed(browser))["counts"]
    assert (counts["cancelled"], counts["processing"], counts["queued"], counts["total"]) == (1, 1, 1, 3)


async def test_only_what_changed(api: Api, browser: httpx.AsyncClient, converter: Converter) -> None:
    jobs = [await uploaded(browser) for _ in range(5)]
    since = (await listed(browser))["since"]
    assert (await listed(browser, since=since))["jobs"] == []
    (lease,) = await converter.take(1)
    await api.heard()
    changed = await listed(browser, since=since)
    assert ids(changed) == [str(lease.id)]
    assert (await listed(browser, since=changed["since"]))["jobs"] == []
    assert sorted(ids(await listed(browser, since="2020-01-01T00:00:00+00:00"))) == sorted(jobs)
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    assert ids(await listed(browser, since=later)) == []
    # Page by page, and then from the cursor on.
    first = await listed(browser, since="2020-01-01", limit=3)
    second = await listed(browser, since=first["next"], limit=3)
    assert sorted(ids(first) + ids(second)) == sorted(jobs)
    assert second["next"] is None
    assert (await browser.get("/api/jobs", params={"since": since, "q": "x"})).status_code == 422


async def test_the_same_list_is_not_sent_twice(api: Api, browser: httpx.AsyncClient, converter: Converter) -> None:
    await uploaded(browser)
    first = await browser.get("/api/jobs")
    tag = {"If-None-Match": first.headers["etag"]}
    # Others' transactions move the cursor, and nothing else.
    await converter.connection.execute("CREATE TABLE unrelated ()")
    again = await browser.get("/api/jobs", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    await converter.take()
    await api.heard()
    assert (await browser.get("/api/jobs", headers=tag)).status_code == 200


async def test_an_open_breaker_is_said(api: Api, browser: httpx.AsyncClient, converter: Converter) -> None:
    job = await uploaded(browser)
    assert (await listed(browser))["on_hold"] is None
    until = datetime.now(UTC) + timedelta(minutes=1)
    await converter.connection.execute(
        "INSERT INTO breakers (name, state, open_until, reason) VALUES ('gateway', 'open', $1, '9 of 10 calls failed')",
        until,
    )
    await converter.connection.execute("SELECT pg_notify('waybill_control', 'look')")
    await api.listening()

    async def held() -> Any:
        return (await browser.get(f"/api/jobs/{job}")).json()["on_hold"]

    hold = await eventually(held)
    assert datetime.fromisoformat(hold["until"]) == until
    listing = await listed(browser)
    assert listing["on_hold"] == listing["jobs"][0]["on_hold"] == hold
    assert listing["active_count"] == 1
    assert (hold["key"], hold["params"]) == ("convert.paused", {})
    assert hold["reason"].startswith("The converter is having an issue.")


async def test_progress_is_told_in_english_whether_it_was_stored_as_a_key_or_not(
    browser: httpx.AsyncClient, converter: Converter
) -> None:
    job = await uploaded(browser)
    await converter.take()
    for stored, told in (("convert.progress.storing", "Storing the result"), ("Page 3 of 10", "Page 3 of 10")):
        await converter.connection.execute("UPDATE jobs SET progress_message = $1", stored)
        assert (await browser.get(f"/api/jobs/{job}")).json()["progress_message"] == told


async def test_purging_jobs_by_hand_takes_their_conversions_along(browser: httpx.AsyncClient, db: Database) -> None:
    job = await uploaded(browser)
    await listed(browser)
    async with db.hot() as connection:
        await connection.execute("DELETE FROM jobs")

    async def gone() -> bool:
        return bool((await listed(browser))["counts"]["total"] == 0)

    await eventually(gone)
    assert (await browser.get(f"/api/jobs/{job}")).status_code == 404

"""What visitors do and are refused is in the audit trail, and admins read it over HTTP."""

from __future__ import annotations

import uuid
from typing import Any

import httpx

from support.api_fixtures import Serve
from support.api_server import Api, upload, uploaded
from waybill.audit.signatures import Signer
from waybill.security import ADMIN

_HEADERS = {"Accept": "application/json"}


async def _events(api: Api, admin: httpx.AsyncClient, **filters: Any) -> list[dict[str, Any]]:
    await api.context.refusals.flush()
    answer = await admin.get("/api/audit", params=filters)
    assert answer.status_code == 200, answer.text
    events: list[dict[str, Any]] = answer.json()["events"]
    return [event for event in events if event["action"] != "audit.listed"]


async def _admin(api: Api) -> httpx.AsyncClient:
    return api.client(key=await api.key("operators", ADMIN))


async def test_sign_ins_good_and_bad_are_recorded_with_address_and_request(api: Api) -> None:
    admin, key = await _admin(api), await api.key("acme")
    browser = await api.browser()
    refused = await browser.post("/session", json={"key": "wb_wrong"})
    assert refused.status_code == 401
    good = await browser.post("/session", json={"key": key})
    assert good.status_code == 200
    await browser.post("/session/end")
    ended, bad, started = sorted(await _events(api, admin, action="session"), key=lambda event: event["action"])
    assert (bad["action"], bad["outcome"], bad["times"]) == ("session.refused", "refused", 1)
    assert bad["request_id"] == refused.headers["x-request-id"]
    assert (started["action"], started["tenant"], started["actor"]) == ("session.started", "acme", "tenant:acme")
    assert started["subject"] == f"key:{started['key_id']}"
    assert started["request_id"] == good.headers["x-request-id"]
    assert (ended["action"], ended["subject"]) == ("session.ended", f"session:{started['session_id']}")
    assert {event["address"] for event in (started, bad, ended)} == {"127.0.0.1"}
    assert not await _events(api, admin, action="request"), "a bad sign-in is one event, not two"


async def test_a_storm_of_refusals_is_one_event_by_whom_it_meets(api: Api) -> None:
    admin = await _admin(api)
    stranger = api.client(key="wb_wrong")
    for _ in range(20):
        assert (await stranger.get("/api/jobs")).status_code == 401
    reader = api.client(key=await api.key("acme", "convert:read"))
    assert (await upload(reader)).status_code == 403
    assert (await reader.get("/api/audit")).status_code == 403
    by_subject = {event["subject"]: event for event in await _events(api, admin, action="request.refused")}
    storm = by_subject["GET /api/jobs"]
    assert (storm["times"], storm["actor"], storm["detail"]["status"]) == (20, "visitor", 401)
    assert by_subject["POST /api/upload"]["actor"] == "tenant:acme"
    assert by_subject["POST /api/upload"]["key_id"] is not None
    assert by_subject["GET /api/audit"]["detail"]["status"] == 403


async def test_too_many_requests_and_pages_of_other_sites_are_recorded(serve: Serve) -> None:
    async with serve(api_key_reads_per_minute=5) as api:
        busy = api.client(key=await api.key("acme"))
        statuses = [(await busy.get("/api/jobs")).status_code for _ in range(8)]
        assert statuses[-1] == 429
        foreign = await api.client().post("/session", json={"key": "x"}, headers={"Sec-Fetch-Site": "cross-site"})
        assert foreign.status_code == 403
        events = await _events(api, await _admin(api), action="request.refused")
        assert {(event["detail"]["status"], event["times"]) for event in events} == {
            (429, statuses.count(429)),
            (403, 1),
        }


async def test_whoever_asks_for_a_foreign_job_is_recorded_and_so_is_whose_it_is(api: Api) -> None:
    admin, owner, other = await _admin(api), api.client(key=await api.key("acme")), await api.browser()
    job = await uploaded(owner)
    for path in (f"/api/jobs/{job}", f"/api/jobs/{job}/events", f"/review/{job}"):
        assert (await other.get(path, headers=_HEADERS)).status_code == 404
    assert (await other.get(f"/api/jobs/{job}/download")).status_code == 403
    assert (await other.post(f"/api/jobs/{job}/cancel")).status_code == 404
    assert (await other.get(f"/api/jobs/{uuid.uuid4()}")).status_code == 404, "that is nobody's"
    (event,) = await _events(api, admin, action="job.foreign")
    assert (event["subject"], event["tenant"], event["times"]) == (f"job:{job}", "acme", 5)
    assert event["actor"].startswith("session:")
    assert not await _events(api, admin, action="request"), "its 403 is the same refusal"


async def test_what_owners_do_with_their_jobs_is_recorded(api: Api) -> None:
    admin, owner = await _admin(api), api.client(key=await api.key("acme"))
    job = await uploaded(owner)
    assert (await owner.post(f"/api/jobs/{job}/cancel")).status_code == 200
    assert (await owner.post(f"/api/jobs/{job}/retry")).status_code == 200
    assert (await owner.delete(f"/api/jobs/{job}")).status_code == 204
    events = await _events(api, admin, subject=f"job:{job}")
    assert [event["action"] for event in events] == ["job.deleted", "job.retried", "job.cancelled"]
    assert {(event["actor"], event["tenant"]) for event in events} == {("tenant:acme", "acme")}


async def test_the_list_has_pages_and_a_look_at_it_is_an_event(api: Api) -> None:
    admin = await _admin(api)
    for _ in range(3):
        await api.key("acme")
    first = (await admin.get("/api/audit", params={"action": "key.created", "tenant": "acme", "limit": 2})).json()
    assert len(first["events"]) == 2
    query = {"action": "key.created", "tenant": "acme", "cursor": first["next"]}
    rest = (await admin.get("/api/audit", params=query)).json()
    assert (len(rest["events"]), rest["next"]) == (1, None)
    assert not {event["id"] for event in rest["events"]} & {event["id"] for event in first["events"]}
    looks = (await admin.get("/api/audit", params={"action": "audit.listed"})).json()["events"]
    assert [look["detail"] for look in looks] == [{"events": 1}, {"events": 2}]
    for wrong in ({"cursor": "x"}, {"limit": 0}, {"since": "x"}, {"who": "\0"}):
        assert (await admin.get("/api/audit", params=wrong)).status_code == 422


async def test_refusals_that_were_counted_are_written_when_the_api_stops(serve: Serve) -> None:
    async with serve() as api:
        assert (await api.client(key="wb_wrong").get("/api/jobs")).status_code == 401
    async with serve() as api:
        events = await _events(api, await _admin(api), action="request.refused")
        assert [event["times"] for event in events] == [1]


async def test_everybody_may_have_the_key_that_checks_the_trail(serve: Serve) -> None:
    async with serve() as api:
        answer = await api.client().get("/api/audit/key")
        async with api.context.database.hot() as connection:
            signer = await Signer.of(api.context.settings, connection)
        assert answer.json() == {
            "algorithm": "Ed25519",
            "fingerprint": signer.fingerprint,
            "public_key": signer.pem,
        }

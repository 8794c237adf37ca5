"""Sessions and keys over HTTP: who is who, and what other sites' pages can make a browser do (nothing)."""

from __future__ import annotations

import time
import uuid
from http.cookies import SimpleCookie
from typing import Any

import httpx

from support.api_fixtures import Serve
from support.api_server import Api, Converter, pdf, upload, uploaded
from support.patience import eventually
from waybill.db import Database
from waybill.security import ADMIN, SessionSigner, keys


async def test_a_browser_gets_a_cookie_that_only_browsers_read(api: Api) -> None:
    client = api.client()
    assert "set-cookie" not in (await client.get("/api/jobs")).headers, "looking is not a visit yet"
    answer = await upload(client)
    morsel = SimpleCookie(answer.headers["set-cookie"])["waybill_session"]
    assert morsel["httponly"]
    assert morsel["samesite"].lower() == "lax"
    assert (morsel["path"], morsel["domain"], morsel["secure"]) == ("/", "", "")
    assert int(morsel["max-age"]) == 30 * 86400
    assert len((await client.get("/api/jobs")).json()["jobs"]) == 1
    assert "set-cookie" not in (await upload(client)).headers, "it has one"


async def test_cookies_are_secure_where_https_is_said(serve: Serve) -> None:
    async with serve(api_https=True) as api:
        answer = await upload(api.client())
        assert "Secure" in answer.headers["set-cookie"]
        assert answer.headers["strict-transport-security"].startswith("max-age=")


async def test_replicas_know_each_others_sessions(serve: Serve) -> None:
    async with serve() as one, serve() as two:
        browser = await one.browser()
        job = await uploaded(browser)
        other = two.client(cookies=dict(browser.cookies))
        assert (await other.get(f"/api/jobs/{job}")).status_code == 200


async def test_an_old_session_is_renewed_and_a_dead_one_is_nobody(api: Api) -> None:
    signer = api.context.signer
    for age, known in ((2 * 86400, True), (31 * 86400, False)):
        session = signer.start(time.time() - age)
        client = api.client(cookies={"waybill_session": signer.dump(session)})
        answer = await upload(client)
        renewed = signer.load(SimpleCookie(answer.headers["set-cookie"])["waybill_session"].value, time.time())
        assert renewed is not None
        assert (renewed.id == session.id) is known
        assert renewed.issued_at > session.issued_at


async def test_signing_in_shares_the_tenants_queue(api: Api) -> None:
    key = await api.key("acme", ADMIN)
    job = await uploaded(api.client(key))
    browser = await api.browser()
    own = await uploaded(browser)
    assert (await browser.get("/api/session")).json() == {
        "signed_in": False,
        "tenant": "public",
        "permissions": ["batches:read", "batches:write", "convert:read", "convert:write"],
    }
    before = dict(browser.cookies)
    assert (await browser.post("/session", json={"key": key})).json()["tenant"] == "acme"
    assert dict(browser.cookies) != before
    assert (await browser.get(f"/api/jobs/{job}")).status_code == 200
    assert (await browser.get(f"/api/jobs/{own}")).status_code == 200
    assert (await browser.post("/session/end")).status_code == 204
    assert (await browser.get(f"/api/jobs/{job}")).status_code == 404
    assert (await browser.get(f"/api/jobs/{own}")).status_code == 404, "it is the tenant's now"

    form = await api.client().post("/session", data={"key": key})
    assert (form.status_code, form.headers["location"]) == (303, "/ops"), "it is an admin's key"
    form = await api.client().post("/session", data={"key": await api.key("acme")})
    assert (form.status_code, form.headers["location"]) == (303, "/queue")
    for wrong in ({"key": "wb_x"}, {"key": key[:-1] + ("a" if key[-1] != "a" else "b")}):
        answer = await api.client().post("/session", json=wrong)
        assert (answer.status_code, answer.json()["code"]) == (401, "UNAUTHORIZED")
    assert (await api.client().post("/session", content=b"[]")).status_code == 400


async def test_what_was_uploaded_before_signing_in_comes_along(api: Api, converter: Converter, clock: Any) -> None:
    key = await api.key()
    program, browser, stranger = api.client(key), await api.browser(), await api.browser()
    since = (await program.get("/api/jobs")).json()["since"]
    running, waiting = await uploaded(browser), await uploaded(browser)
    foreign = await uploaded(stranger)
    (lease,) = await converter.take(1)
    old = api.client(cookies=dict(browser.cookies))
    assert (await browser.post("/session", json={"key": key})).status_code == 200
    await api.heard()
    told = (await program.get("/api/jobs", params={"since": since})).json()
    assert {job["id"] for job in told["jobs"]} == {running, waiting}
    assert told["counts"]["total"] == 2
    assert (await old.get("/api/jobs")).json()["counts"]["total"] == 0
    await converter.finish(lease)
    assert (await browser.get(f"/api/jobs/{running}/download")).status_code == 200
    assert (await browser.post(f"/api/jobs/{waiting}/cancel")).status_code == 200
    assert (await browser.get(f"/api/jobs/{foreign}")).status_code == 404
    assert (await stranger.get(f"/api/jobs/{foreign}")).status_code == 200
    owners = await converter.connection.fetch("SELECT id::text, owner, tenant FROM jobs")
    assert {(row["id"], row["owner"]) for row in owners if row["id"] != foreign} == {
        (running, "tenant:acme"),
        (waiting, "tenant:acme"),
    }
    assert {row["tenant"] for row in owners} == {"public"}, "who pays for a job is decided once"


async def test_who_may_only_look_gets_its_uploads_back_by_signing_out(api: Api) -> None:
    key = await api.key("acme", "convert:read")
    other = await api.key("other", "convert:read")
    browser = await api.browser()
    own = await uploaded(browser)
    for each in (key, other):  # from one to the other, without signing out
        assert (await browser.post("/session", json={"key": each})).status_code == 200
        assert (await browser.get(f"/api/jobs/{own}")).status_code == 404
    assert (await api.client(key).get("/api/jobs")).json()["counts"]["total"] == 0
    assert (await browser.post("/session/end")).status_code == 204
    assert (await browser.get(f"/api/jobs/{own}")).status_code == 200
    assert (await browser.get("/api/session")).json()["signed_in"] is False


async def test_nobody_takes_over_what_is_not_theirs_by_signing_in(api: Api) -> None:
    key = await api.key("thief")
    browser = await api.browser()
    own = await uploaded(browser)
    session = api.context.signer.load(browser.cookies["waybill_session"], time.time())
    assert session is not None
    forged = SessionSigner(b"x" * 32, lasts=1000).dump(session)
    thief = api.client(headers={"Cookie": f"waybill_session={forged}"})
    assert (await thief.post("/session", json={"key": key})).status_code == 200
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}):
        assert (await browser.post("/session", data={"key": key}, headers=headers)).status_code == 403
    assert (await api.client(key).get("/api/jobs")).json()["counts"]["total"] == 0
    assert (await browser.get(f"/api/jobs/{own}")).status_code == 200
    # What is a tenant's already goes nowhere.
    assert (await browser.post("/session", json={"key": await api.key("acme")})).status_code == 200
    assert (await browser.post("/session", json={"key": key})).status_code == 200
    assert (await browser.get(f"/api/jobs/{own}")).status_code == 404


async def test_guessing_keys_is_slow(api: Api) -> None:
    answers = [(await api.client().post("/session", json={"key": "wb_x"})).status_code for _ in range(12)]
    assert answers == [401] * 10 + [429] * 2


async def test_a_revoked_or_expired_key_is_no_key(api: Api, db: Database, clock: Any) -> None:
    revoked, expiring = await api.key("acme"), await api.key("acme", expires_in=1.5)
    parsed = keys.parse(revoked)
    assert parsed is not None
    program, browser, short = api.client(revoked), api.client(), api.client(expiring)
    await browser.post("/session", json={"key": revoked})
    for client in (program, browser, short):
        assert (await client.get("/api/session")).json()["tenant"] == "acme"
    async with db.hot() as connection:
        await keys.revoke(connection, parsed[0])

    async def refused() -> bool:
        return (await program.get("/api/jobs")).status_code == 401

    await eventually(refused, what="told of it")
    answer = await program.get("/api/jobs")
    assert (answer.headers["www-authenticate"], answer.json()["code"]) == ("Bearer", "UNAUTHORIZED")
    assert (await browser.get("/api/session")).json()["signed_in"] is False
    await clock.forward(10)

    async def over() -> bool:
        return (await short.get("/api/jobs")).status_code == 401

    await eventually(over)
    for header in ("Basic abc", "Bearer", "Bearer wb_" + "z" * 22 + "_" + "a" * 43, "wb_x"):
        answer = await api.client(headers={"Authorization": header}).get("/api/jobs")
        assert answer.status_code == 401, header


async def test_a_forged_cookie_is_nobody(api: Api) -> None:
    browser = await api.browser()
    job = await uploaded(browser)
    real = browser.cookies["waybill_session"]
    other = SessionSigner(b"x" * 32, lasts=1000)
    session = api.context.signer.load(real, time.time())
    assert session is not None
    version, body, mac = real.split(".")
    for forged in (
        other.dump(session),
        f"{version}.{body}.",
        f"{version}.{body}.{mac[:-2]}",
        f"2.{body}.{mac}",
        f"{version}..{mac}",
        "a" * 5000,
        "..",
        f"{version}.{body[:-4]}AAAA.{mac}",
    ):
        client = api.client(headers={"Cookie": f"waybill_session={forged}"})
        assert (await client.get(f"/api/jobs/{job}")).status_code == 404, forged


async def test_pages_of_other_sites_change_nothing(api: Api) -> None:
    key = await api.key()
    for headers, allowed in [
        ({"Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Sec-Fetch-Site": "cross-site", "Origin": api.url}, False),
        ({"Origin": api.url}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://127.0.0.1:1"}, False),
        ({"Origin": "http://[bad"}, False),
        ({}, True),
    ]:
        browser = await api.browser()
        job = await uploaded(browser)
        for method, path, fine in [
            ("POST", f"/api/jobs/{job}/cancel", 200),
            ("POST", f"/api/jobs/{job}/retry", 200),
            ("DELETE", f"/api/jobs/{job}", 204),
            ("POST", "/session/end", 204),
        ]:
            answer = await browser.request(method, path, headers=headers)
            assert answer.status_code == (fine if allowed else 403), (headers, method, path, answer.text)
        files = {"file": ("a.pdf", pdf(), "application/pdf")}
        status = (await browser.post("/api/upload", files=files, headers=headers)).status_code
        assert status == (201 if allowed else 403), headers
        assert (await browser.get("/api/jobs", headers=headers)).status_code == 200
        program = api.client(key, headers=headers)
        assert (await upload(program)).status_code == 201, "a key is nothing a browser sends by itself"


async def test_other_origins_are_closed_unless_named(serve: Serve) -> None:
    origin = {"Origin": "https://erp.example.com"}
    asking = {**origin, "Access-Control-Request-Method": "GET", "Access-Control-Request-Headers": "authorization"}
    async with serve() as api:
        client = api.client()
        for answer in (
            await client.get("/api/jobs", headers=origin),
            await client.options("/api/jobs", headers=asking),
        ):
            assert not [name for name in answer.headers if name.startswith("access-control")]
    async with serve(api_cors_origins="https://erp.example.com") as api:
        client = api.client()
        allowed = await client.options("/api/jobs", headers=asking)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, origin["Origin"])
        assert "access-control-allow-credentials" not in allowed.headers
        assert (await client.get("/api/jobs", headers=origin)).headers["access-control-allow-origin"]
        other = await client.get("/api/jobs", headers={"Origin": "https://evil.example"})
        assert "access-control-allow-origin" not in other.headers
        assert (await client.post("/session/end", headers=origin)).status_code == 403, "no cookies from elsewhere"


async def test_only_our_own_names_are_answered_to(serve: Serve) -> None:
    async with serve(api_hosts="waybill.example.com,*.waybill.test") as api:
        client = api.client()
        for host, status in [
            ("waybill.example.com", 200),
            ("WAYBILL.example.com:8080", 200),
            ("a.waybill.test", 200),
            ("waybill.test", 400),
            ("evil.example", 400),
            ("waybill.example.com.evil.example", 400),
        ]:
            assert (await client.get("/api/jobs", headers={"Host": host})).status_code == status, host
            assert (await client.get("/livez", headers={"Host": host})).status_code == 200


async def test_every_answer_has_the_headers_that_keep_browsers_safe(api: Api) -> None:
    client = api.client()
    answers: list[httpx.Response] = [
        await client.get("/api/jobs"),
        await client.get(f"/api/jobs/{uuid.uuid4()}"),
        await client.get("/nowhere"),
        await client.get("/api/openapi.json"),
        await upload(client, b"no pdf"),
        await client.post("/session/end", headers={"Sec-Fetch-Site": "cross-site"}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["cross-origin-opener-policy"] == "same-origin"
        assert "no-" in answer.headers["cache-control"]
        assert "server" not in answer.headers


async def test_a_copied_cookie_is_of_no_use_once_its_session_has_ended(serve: Serve) -> None:
    async with serve() as one, serve() as two:
        key, browser = await one.key("acme"), one.client()
        assert (await browser.post("/session", json={"key": key})).status_code == 200
        thieves = [replica.client(cookies=dict(browser.cookies)) for replica in (one, two)]
        for thief in thieves:
            assert (await thief.get("/api/session")).json()["tenant"] == "acme"
        assert (await browser.post("/session/end")).status_code == 204
        await two.heard()
        for thief in thieves:
            assert (await thief.get("/api/session")).json() == (await one.client().get("/api/session")).json()
        # Not by signing out with it again, and not by signing in from it.
        assert (await thieves[0].post("/session/end")).status_code == 204
        assert not (await thieves[0].get("/api/session")).json()["signed_in"]


async def test_the_session_that_signed_in_ends_unless_its_browser_returns_to_it(api: Api) -> None:
    adopted, kept = await api.browser(), await api.browser()
    copies = [api.client(cookies=dict(browser.cookies)) for browser in (adopted, kept)]
    mine = await uploaded(kept)
    assert (await adopted.post("/session", json={"key": await api.key()})).status_code == 200
    assert (await kept.post("/session", json={"key": await api.key("acme", "convert:read")})).status_code == 200
    assert "set-cookie" in (await upload(copies[0])).headers, "what it had is the tenant's, so it is nobody now"
    assert (await kept.get(f"/api/jobs/{mine}")).status_code == 404
    await kept.post("/session/end")
    assert (await kept.get(f"/api/jobs/{mine}")).status_code == 200
    assert (await copies[1].get(f"/api/jobs/{mine}")).status_code == 200


async def test_a_session_that_was_erased_has_ended(api: Api) -> None:
    browser = await api.browser()
    await uploaded(browser)
    copy = api.client(cookies=dict(browser.cookies))
    assert (await browser.delete("/api/session")).status_code == 200
    assert "set-cookie" in (await upload(copy)).headers


async def test_a_right_key_is_taken_while_a_neighbour_guesses(api: Api) -> None:
    key = await api.key()
    for _ in range(12):
        guess = await api.client().post("/session", json={"key": "wb_x"})
    assert guess.status_code == 429
    assert int(guess.headers["retry-after"]) > 0
    assert (await api.client().post("/session", json={"key": key})).status_code == 200

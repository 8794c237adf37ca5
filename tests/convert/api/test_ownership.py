"""Nobody reads what is not theirs: every endpoint, asked by everybody."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from typing import Any

import httpx

from support.api_server import Api, Converter, uploaded
from support.reviewed_invoices import end, good
from waybill.security import ADMIN

# What each endpoint answers: (owner, everybody else). A foreign id looks like a missing one; only downloads say 403. An
# admin reads like the owner, and changes like everybody else.
ENDPOINTS: list[tuple[str, str, int, int]] = [
    ("GET", "/api/jobs/{done}", 200, 404),
    ("GET", "/api/jobs/{done}/events", 200, 404),
    ("GET", "/api/jobs/{done}/explain", 200, 404),
    ("GET", "/api/jobs/{done}/provenance", 200, 404),
    ("GET", "/api/jobs/{done}/attachments/1", 404, 404),
    ("GET", "/api/jobs/{missing}/attachments", 404, 404),
    ("GET", "/api/jobs/{done}/download", 200, 403),
    ("GET", "/api/jobs/download?ids={done}", 200, 403),
    ("GET", "/api/jobs/download?ids={mine},{done}", 200, 403),
    ("GET", "/api/jobs/{waiting}/download", 409, 403),
    ("GET", "/api/jobs/{missing}", 404, 404),
    ("GET", "/api/jobs/{missing}/download", 404, 404),
    ("POST", "/api/jobs/{done}/pin", 200, 404),
    ("DELETE", "/api/jobs/{done}/pin", 200, 404),
    ("POST", "/api/jobs/{missing}/pin", 404, 404),
    ("POST", "/api/jobs/{waiting}/cancel", 200, 404),
    ("POST", "/api/jobs/{waiting}/retry", 200, 404),
    ("DELETE", "/api/jobs/{waiting}", 204, 404),
]
LISTS = ["/api/jobs", "/api/jobs?q={done}", "/api/jobs?status=complete", "/api/jobs?since=2020-01-01T00:00:00Z"]


async def test_every_endpoint_for_everybody(api: Api, converter: Converter) -> None:
    session, key = await api.browser(), await api.key("acme")
    signed_in = api.client()
    assert (await signed_in.post("/session", json={"key": key})).status_code == 200
    strangers = {
        "no cookie": api.client(),
        "other session": await api.browser(),
        "other tenant's key": api.client(await api.key("other")),
        "other tenant's admin": api.client(await api.key("boss", ADMIN)),
        "forged cookie": api.client(cookies={"waybill_session": "1.eyJzIjoiMDAifQ.AAAA"}),
    }
    known = [stranger for name, stranger in strangers.items() if "cookie" not in name]
    for stranger in known:  # with something of their own, so that nothing is empty by accident
        await uploaded(stranger)
    assert len(await converter.finish_all()) == len(known)

    for owners in ([session], [api.client(key), signed_in]):
        done = await uploaded(owners[0])
        await converter.finish_all(b"<secret/>")
        waiting = await uploaded(owners[0])
        ids = {"done": done, "waiting": waiting, "missing": str(uuid.uuid4())}
        everybody = {**strangers, "the other owner": api.client(key) if owners[0] is session else session}
        for name, stranger in everybody.items():
            mine = await _ready_of(stranger) or done
            for method, path, for_owner, expected in ENDPOINTS:
                answer = await stranger.request(method, path.format(mine=mine, **ids))
                if name == "other tenant's admin" and method == "GET" and "ids=" not in path:
                    assert answer.status_code == for_owner, "an admin reads what is there, one at a time"
                    continue
                assert answer.status_code == expected, (name, method, path, answer.text)
                assert answer.headers["content-type"] == "application/problem+json"
                assert "secret" not in answer.text
            for path in LISTS:
                answer = await stranger.get(path.format(**ids))
                assert answer.status_code == 200
                assert done not in [job["id"] for job in answer.json()["jobs"]], (name, path)
                assert waiting not in answer.text
            everything = await stranger.get("/api/jobs/download")
            assert everything.status_code in (200, 409)
            assert done.encode() not in everything.content
            first = await _first_event(stranger)
            assert done not in first
        for owner in owners:
            for path in LISTS:
                jobs = (await owner.get(path.format(**ids))).json()["jobs"]
                assert done in [job["id"] for job in jobs], path
        for method, path, expected, _ in ENDPOINTS:
            owner = owners[-1]
            answer = await owner.request(method, path.format(mine=done, **ids))
            assert answer.status_code == expected, (method, path, answer.text)


async def _ready_of(client: httpx.AsyncClient) -> str | None:
    jobs = (await client.get("/api/jobs?status=complete")).json()["jobs"]
    return str(jobs[0]["id"]) if jobs else None


async def _first_event(client: httpx.AsyncClient) -> str:
    async with client.stream("GET", "/api/stream?since=2020-01-01T00:00:00Z") as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                return line
    raise AssertionError("no event came")


async def test_a_key_may_do_what_it_was_made_for(api: Api, converter: Converter) -> None:
    full = api.client(await api.key("acme"))
    reads = api.client(await api.key("acme", "convert:read"))
    writes = api.client(await api.key("acme", "convert:write"))
    job = await uploaded(full)
    assert (await reads.get(f"/api/jobs/{job}")).status_code == 200
    assert (await writes.get(f"/api/jobs/{job}")).status_code == 403
    for method, path in [
        ("POST", "/api/upload"),
        ("POST", "/api/uploads"),
        ("POST", f"/api/jobs/{job}/cancel"),
        ("POST", f"/api/jobs/{job}/retry"),
        ("POST", f"/api/jobs/{job}/pin"),
        ("DELETE", f"/api/jobs/{job}/pin"),
        ("DELETE", f"/api/jobs/{job}"),
    ]:
        answer = await reads.request(method, path)
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN"), path
    assert (await writes.post(f"/api/jobs/{job}/cancel")).status_code == 200


async def test_our_machines_names_are_for_operators(api: Api, converter: Converter) -> None:
    person, boss = api.client(await api.key("acme")), api.client(await api.key("acme", ADMIN))
    job = await uploaded(person)
    await converter.take()
    for path in ("explain", "events"):
        assert converter.worker.name not in (await person.get(f"/api/jobs/{job}/{path}")).text
    assert converter.worker.name in (await boss.get(f"/api/jobs/{job}/explain")).text
    told: dict[str, Any] = (await person.get(f"/api/jobs/{job}/explain")).json()
    assert (told["reason"], told["sentence"]) == ("running", "This document is being converted.")
    assert (told["key"], told["params"]) == ("convert.being_converted", {})


async def test_an_archive_holds_what_was_asked_for(api: Api, converter: Converter) -> None:
    client = await api.browser()
    jobs = [await uploaded(client) for _ in range(3)]
    for lease in await converter.take():
        await converter.finish(lease, b"<job>" + str(lease.id).encode() * 3000 + b"</job>")
    answer = await client.get(f"/api/jobs/download?ids={jobs[0]},{jobs[2]},{jobs[0]}")
    assert answer.headers["content-type"] == "application/zip"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [f"invoice-{jobs[0]}.xml", f"invoice-{jobs[2]}.xml"]
        assert archive.read(f"invoice-{jobs[2]}.xml") == b"<job>" + jobs[2].encode() * 3000 + b"</job>"
    with zipfile.ZipFile(io.BytesIO((await client.get("/api/jobs/download")).content)) as archive:
        assert len(archive.namelist()) == 3
    assert (await client.get("/api/jobs/download?ids=nonsense")).status_code == 422
    assert (await client.get("/api/jobs/download?ids=")).status_code == 422
    assert json.loads((await api.client().get("/api/jobs/download")).text)["code"] == "NOT_READY"


async def test_a_key_that_may_only_write_reads_nothing(api: Api, converter: Converter) -> None:
    owner, writer = api.client(await api.key("acme")), api.client(await api.key("acme", "convert:write"))
    job = await uploaded(owner, good().pdf)
    await end(converter, good())
    change = {"base": 0, "changes": [{"path": "buyer_name", "value": "PT Baru"}]}
    answers = [
        await writer.post(f"/api/jobs/{job}/revisions", json={**change, "preview": True}),
        await writer.post(f"/api/jobs/{job}/revisions", json=change),
        await writer.post(f"/review/{job}", data={"base": "0", "do": "check"}),
        await writer.post(f"/review/{job}/check", data={"base": "0"}),
        await writer.post(f"/queue/{job}/pin"),
        await writer.post(f"/queue/{job}/unpin"),
        await writer.get(f"/review/{job}/lines", params={"at": "lines[0]"}),
    ]
    assert [answer.status_code for answer in answers] == [403] * 7
    assert good().data["buyer_name"] not in "".join(answer.text for answer in answers)
    assert (await owner.get(f"/api/jobs/{job}/revisions")).json()["revisions"] == []

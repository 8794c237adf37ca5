"""Nobody reads what is not theirs: every route of batches, asked by everybody."""

from __future__ import annotations

import uuid

import httpx
import pytest

from support.api_server import Api
from support.batch_desk import MAY, Desk, files, made, notes, text
from support.zips import zipped
from waybill.security import ADMIN

pytestmark = pytest.mark.timeout(120)

ROUTES = [
    ("GET", "/api/batches/{batch}", 200),
    ("GET", "/api/batches/{batch}/files", 200),
    ("GET", "/api/batches/{batch}/files?status=complete&q=a", 200),
    ("GET", "/api/batches/{batch}/files/{doc}", 200),
    ("GET", "/api/batches/{batch}/files/{doc}/result", 200),
    ("GET", "/api/batches/{batch}/download", 200),
    ("HEAD", "/api/batches/{batch}", 200),
    ("HEAD", "/api/batches/{batch}/files", 200),
    ("HEAD", "/api/batches/{batch}/files/{doc}", 200),
    ("HEAD", "/api/batches/{batch}/files/{doc}/result", 200),
    ("HEAD", "/api/batches/{batch}/download", 200),
    ("POST", "/api/batches/{batch}/cancel", 409),
    ("POST", "/api/batches/{batch}/retry", 409),
    ("DELETE", "/api/batches/{batch}", 204),
]
"""What the owner of a complete batch is answered. It is 404 for everybody else, and for what is not there."""


async def test_every_route_for_everybody(desk: Desk, api: Api) -> None:
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
    for owners in ([session], [api.client(key), signed_in]):
        new = await made(owners[0], zipped(("a.txt", b"the secret\n")))
        await desk.work()
        (file,) = await files(owners[0], new)
        ids = {"batch": new, "doc": file["doc_id"]}
        everybody = {**strangers, "the other owner": api.client(key) if owners[0] is session else session}
        for name, stranger in everybody.items():
            own = await made(stranger, notes("own.txt"))
            await desk.work()
            mixed = {"batch": own, "doc": file["doc_id"]}
            for method, path, _ in ROUTES:
                for wanted in (ids, mixed) if "{doc}" in path else (ids,):
                    answer = await stranger.request(method, path.format(**wanted))
                    assert answer.status_code == 404, (name, method, path, answer.text)
                    assert "secret" not in answer.text
            listed = await stranger.get("/api/batches")
            assert new not in listed.text, name
            assert new not in await first_event(stranger), name
        for owner in owners:
            assert new in (await owner.get("/api/batches")).text
            for method, path, expected in ROUTES:
                if method in ("GET", "HEAD"):
                    assert (await owner.request(method, path.format(**ids))).status_code == expected, (method, path)
        for method, path, expected in ROUTES:
            answer = await owners[-1].request(method, path.format(**ids))
            assert answer.status_code == expected, (method, path, answer.text)
        for method, path, _ in ROUTES:
            gone = {**ids, "batch": str(uuid.uuid4())}
            for missing in (ids, gone):
                assert (await owners[-1].request(method, path.format(**missing))).status_code == 404, (method, path)


async def first_event(client: httpx.AsyncClient) -> str:
    async with client.stream("GET", "/api/batches/stream", headers={"Last-Event-ID": "1"}) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data:"):
                return line
    raise AssertionError("no event came")


async def test_a_key_may_do_what_it_was_made_for(desk: Desk, api: Api) -> None:
    full, reads = api.client(await api.key("acme", *MAY)), api.client(await api.key("acme", "batches:read"))
    writes = api.client(await api.key("acme", "batches:write"))
    converts = api.client(await api.key("acme", "convert:read", "convert:write"))
    new = await made(full, notes("a.txt"))
    await desk.work()
    (file,) = await files(full, new)
    for method, path, expected in [("POST", "/api/batches", 0), ("GET", "/api/batches", 200), *ROUTES]:
        wanted = path.format(batch=new, doc=file["doc_id"])
        for client in (writes, converts):
            assert (await client.request(method, wanted)).status_code == 403, (method, path)
        answer = await reads.request(method, wanted)
        assert answer.status_code == (expected if method in ("GET", "HEAD") else 403), (method, path)
    assert (await full.get(f"/api/batches/{new}")).status_code == 200


async def test_an_admin_of_the_tenant_is_the_tenant(desk: Desk, api: Api) -> None:
    new = await made(api.client(await api.key("acme", *MAY)), zipped(("a.txt", text())))
    await desk.work()
    boss = api.client(await api.key("acme", ADMIN))
    assert (await boss.get(f"/api/batches/{new}")).status_code == 200
    assert (await boss.delete(f"/api/batches/{new}")).status_code == 204

"""Uploads that name no mapping but `auto`: pinned to what there was, found again, and chosen by a person if need be."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from support.api_fixtures import Serve
from support.api_server import Api, Converter, pdf, upload
from waybill.db import Database
from waybill.failures import classify
from waybill_convert.clients.answers import Rejected
from waybill_documents.catalogue import names

SIMON = "pt_simon_invoice_v1"
OFFERED = [
    {"name": "coolblue_v1", "title": "Coolblue invoice", "score": 17},
    {"name": SIMON, "title": "PT Simon <invoice>", "score": 4},
]


async def rows(db: Database, statement: str) -> list[Any]:
    async with db.hot() as connection:
        return list(await connection.fetch(statement))


async def not_recognised(converter: Converter) -> None:
    """End all jobs as the gateway ends a document that chooses nothing."""
    params = {"count": 9, "candidates": OFFERED}
    problem = {"detail": "None of the 9 mappings recognises it.", "key": "recognition.nothing", "params": params}
    for claimed in await converter.take():
        await converter.fail(claimed, classify(Rejected.of({**problem, "findings": []}, 422)))


async def test_the_mappings_of_the_moment_are_pinned(api: Api, db: Database) -> None:
    job = (await upload(api.client(), mapping="auto")).json()["job"]
    assert (job["mapping"], job["requested_mapping"]) == ("auto", "auto")
    assert (job["recognition"], job["candidates"]) == (None, [])
    (row,) = await rows(
        db,
        "SELECT mapping, entries::text FROM conversions"
        " JOIN mapping_catalogues AS pinned ON pinned.sha256 = mapping_sha256",
    )
    assert row["mapping"] == "auto"
    assert [name for name, _, origin in json.loads(row["entries"]) if origin == "shipped"] == list(names())
    await upload(api.client(), mapping="auto")
    assert len(await rows(db, "SELECT FROM mapping_catalogues")) == 1, "the same mappings are kept once"


async def test_the_same_document_is_found_again_by_what_was_asked_for(
    api: Api, serve: Serve, db: Database, tmp_path: Path
) -> None:
    client, content = await api.browser(), pdf()
    first = (await upload(client, content, mapping="auto")).json()
    assert first["deduped_from"] is None
    assert (await upload(client, content, mapping="auto")).json()["deduped_from"] == first["job"]["id"]
    assert (await upload(client, content, mapping=SIMON)).json()["deduped_from"] is None
    # What it chose does not matter: the same question has the same answer.
    chosen = "UPDATE conversions SET used_mapping = 'oyo_v1', used_sha256 = 'x' WHERE job_id = $1"
    async with db.hot() as connection:
        await connection.execute(chosen, uuid.UUID(first["job"]["id"]))
    again = (await upload(client, content, mapping="auto")).json()
    assert (again["deduped_from"], again["job"]["mapping"]) == (first["job"]["id"], "oyo_v1")
    assert again["job"]["requested_mapping"] == "auto"
    # One more mapping is another question.
    mine = {"format": 1, "name": "saeco_v1", "title": "Saeco", "recognise": {"all": ["Saeco"]}}
    (tmp_path / "saeco_v1.json").write_text(json.dumps(mine))
    async with serve(mappings_dir=str(tmp_path)) as other:
        cookies = dict(client.cookies.items())
        answer = await upload(other.client(cookies=cookies), content, mapping="auto")
        assert answer.json()["deduped_from"] is None


async def test_a_document_that_chose_nothing_is_converted_as_a_person_says(api: Api, converter: Converter) -> None:
    client = await api.browser()
    job = (await upload(client, mapping="auto")).json()["job"]
    await not_recognised(converter)
    failed = (await client.get(f"/api/jobs/{job['id']}")).json()
    assert (failed["status"], failed["mapping"], failed["candidates"]) == ("failed", "auto", OFFERED)

    page = (await client.get("/queue?status=failed")).text
    assert page.count('class="offer"') == 1
    assert f'action="/queue/{job["id"]}/retry?status=failed&amp;mapping=coolblue_v1"' in page
    assert "PT Simon invoice to Coretax e-Faktur (4)" in page
    assert f'action="/queue/{job["id"]}/retry?status=failed&amp;mapping=auto"' in page
    # What a browser without scripts sends:
    sent = await client.post(f"/queue/{job['id']}/retry?status=failed&mapping=coolblue_v1")
    assert (sent.status_code, sent.headers["location"]) == (303, "/queue?status=failed")

    queued = (await client.get(f"/api/jobs/{job['id']}")).json()
    assert (queued["status"], queued["mapping"], queued["requested_mapping"]) == (
        "queued",
        "coolblue_v1",
        "coolblue_v1",
    )


async def test_a_retry_takes_a_mapping_or_the_mappings_of_now(api: Api, converter: Converter, db: Database) -> None:
    client = await api.browser()
    job = (await upload(client, mapping="auto")).json()["job"]
    await not_recognised(converter)
    refused = await client.post(f"/api/jobs/{job['id']}/retry", params={"mapping": "no_such_v1"})
    assert (refused.status_code, refused.json()["code"]) == (400, "BAD_MAPPING")
    async with db.hot() as connection:
        await connection.execute("UPDATE conversions SET mapping_sha256 = 'as it was'")
    plain = await client.post(f"/api/jobs/{job['id']}/retry")
    assert plain.json()["status"] == "queued"
    assert (await rows(db, "SELECT mapping_sha256 FROM conversions"))[0]["mapping_sha256"] == "as it was"
    await not_recognised(converter)
    anew = (await client.post(f"/api/jobs/{job['id']}/retry", params={"mapping": "auto"})).json()
    assert (anew["mapping"], anew["requested_mapping"]) == ("auto", "auto")
    (row,) = await rows(
        db,
        "SELECT count(*) AS kept FROM conversions JOIN mapping_catalogues AS pinned ON pinned.sha256 = mapping_sha256",
    )
    assert row["kept"] == 1
    foreign = await (await api.browser()).post(f"/api/jobs/{job['id']}/retry", params={"mapping": "auto"})
    assert foreign.status_code == 404


async def test_the_default_may_be_auto_and_the_page_begins_with_it(api: Api, serve: Serve) -> None:
    assert (await upload(api.client())).json()["job"]["mapping"] == SIMON
    page = (await api.client().get("/")).text
    assert '<option value="auto" selected>Recognise automatically</option>' in page
    assert page.index('value="auto"') < page.index(f'value="{SIMON}"')
    async with serve(default_mapping="auto") as other:
        assert (await upload(other.client())).json()["job"]["mapping"] == "auto"
        assert (await other.client().get("/api/mappings")).json()["default"] == "auto"
    async with serve(default_mapping="gone_v1") as other:
        assert (await upload(other.client())).json()["code"] == "BAD_MAPPING"
        assert (await upload(other.client(), mapping="auto")).status_code == 201


@pytest.mark.parametrize("name", ["auto.json", " auto "])
async def test_auto_may_be_spelled_like_a_file(api: Api, name: str) -> None:
    assert (await upload(api.client(), mapping=name)).json()["job"]["mapping"] == "auto"

"""`POST /api/batches` with a schema: refused at once if it cannot be used, or if there is no language model."""

from __future__ import annotations

import json

import httpx
import pytest

from support.api_fixtures import Serve, folder, serve
from support.zips import zipped

__all__ = ["folder", "serve"]

SCHEMA = json.dumps({"type": "object", "properties": {"total": {"type": "number"}}})
MAY = ("batches:read", "batches:write")


async def send(client: httpx.AsyncClient, schema: str) -> httpx.Response:
    files = {"file": ("a.zip", zipped(("a.txt", b"one")), "application/zip")}
    return await client.post("/api/batches", files=files, data={"schema": schema})


async def test_without_a_language_model_a_schema_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYBILL_LLM_URL", raising=False)
    async with serve() as api:
        client = api.client(await api.key("acme", *MAY))
        answer = await send(client, SCHEMA)
        assert (answer.status_code, answer.json()["key"]) == (422, "batches.schema.no_model")
        assert "No language model" in answer.json()["detail"]
        assert (await client.get("/api/batches")).json()["batches"] == []
        assert (await send(client, "")).status_code == 202


async def test_a_schema_is_checked_and_makes_a_batch_that_is_enriched(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAYBILL_LLM_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("WAYBILL_LLM_MODEL", "tiny-1")
    async with serve() as api:
        client = api.client(await api.key("acme", *MAY))
        answer = await send(client, '{"type": "object"}')
        assert (answer.status_code, answer.json()["key"]) == (422, "batches.schema.no_fields")
        taken = await send(client, SCHEMA)
        assert taken.status_code == 202
        assert taken.json()["batch"]["enriched"] is True
        assert (await send(client, SCHEMA)).json()["deduped_from"] == taken.json()["batch"]["id"]
        assert (await send(client, '{"type": "object", "properties": {"number": {}}}')).status_code == 202

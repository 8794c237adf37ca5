"""An accepted document that is not in the storage is waited for: during a move it may be in the other place."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from convert.conftest import put
from support.engine import events
from support.sick_gateway import answering, sick_gateway
from waybill.db import Database
from waybill.db.database import Connection
from waybill.security import Principal
from waybill.storage import LocalStorage, upload_key
from waybill_convert import handlers  # noqa: F401 - so that the kind has its handler
from waybill_convert.service import Conversions
from waybill_engine import State
from waybill_engine.testing import make_due, run_inline

GOOD = b'{"xml": "<a/>", "source": {"pages": [{}]}, "data": {"number": "1"}}'


@pytest.fixture(autouse=True)
async def _gateway(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    async with sick_gateway(answering(200, GOOD)) as gateway:
        monkeypatch.setenv("WAYBILL_GATEWAY_URL", gateway.url)
        yield


async def uploaded(conversions: Conversions, me: Principal, hot: Connection) -> uuid.UUID:
    job = (await put(conversions, me)).job.id
    # A mapping that only a gateway knows, so that any XML is an answer.
    await hot.execute("UPDATE conversions SET mapping = 'some_v1', mapping_sha256 = NULL")
    return job


async def test_a_document_that_turns_up_late_is_converted_at_no_cost(
    db: Database, hot: Connection, conversions: Conversions, storage: LocalStorage, me: Principal, tmp_path: Path
) -> None:
    job = await uploaded(conversions, me, hot)
    elsewhere = LocalStorage(tmp_path / "elsewhere")  # the place that this worker knows
    waits = []
    for _ in range(6):
        outcome = await run_inline(db, elsewhere, job)
        assert (outcome.state, outcome.attempts, outcome.code) == (State.SCHEDULED, 0, None)
        waits.append(round((outcome.due_in or 0) + 0.5))
        await make_due(hot)
    assert waits == [5, 5, 10, 20, 40, 60]
    await elsewhere.put(upload_key(job), await storage.get(upload_key(job)))
    assert (await run_inline(db, elsewhere, job)).state is State.SUCCEEDED
    assert await events(hot, job) == [*["snoozed"] * 6, "succeeded"]


async def test_it_is_not_waited_for_longer_than_the_settings_say(
    db: Database,
    hot: Connection,
    conversions: Conversions,
    storage: LocalStorage,
    me: Principal,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAYBILL_DOCUMENT_WAIT", "7")
    job = await uploaded(conversions, me, hot)
    await storage.delete(upload_key(job))
    for _ in range(2):
        assert (await run_inline(db, storage, job)).state is State.SCHEDULED
        await make_due(hot)
    outcome = await run_inline(db, storage, job)
    assert (outcome.state, outcome.code) == (State.FAILED, "EXPIRED")


async def test_what_was_removed_is_not_waited_for(
    db: Database, hot: Connection, conversions: Conversions, storage: LocalStorage, me: Principal
) -> None:
    job = await uploaded(conversions, me, hot)
    await hot.execute("UPDATE conversions SET upload_deleted_at = now()")
    await storage.delete(upload_key(job))
    outcome = await run_inline(db, storage, job)
    assert (outcome.state, outcome.code) == (State.FAILED, "EXPIRED")

"""A batch with a schema: its files are extracted, then a language model fills the fields, one job per file.

Everything is real but the model: Postgres, storage, the gateway, the worker's own code.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.clock import Clock
from support.gateway import Gateway
from support.log_lines import configured_log
from support.model_endpoint import KEY, Endpoint, model_endpoint, refuses, says
from support.packs import SECRET
from support.sick_gateway import Answer
from support.zips import zipped
from waybill.db import Database
from waybill.errors import Code, Conflict
from waybill.ids import new_id
from waybill.security import Principal, of_tenant
from waybill.storage import LocalStorage
from waybill_batches import handlers as _handlers
from waybill_batches.error_types import ErrorType
from waybill_batches.extraction import EXTRACTOR
from waybill_batches.models import ReceivedZip
from waybill_batches.repository import retention
from waybill_batches.retention import RETENTION
from waybill_batches.service import Batches
from waybill_batches.status import BatchStatus, FileStatus
from waybill_batches.upload_form import BatchForm
from waybill_batches.upload_service import BatchUploads
from waybill_batches.views import FileView
from waybill_batches.wanted_fields import WantedFields
from waybill_engine import State
from waybill_engine.testing import InlineOutcome, make_due, run_waiting

HANDLERS = _handlers
"""Imported, so that this process can run their jobs."""
UNPACKING = ("process_batch", "extract_file")
SCHEMA = {
    "type": "object",
    "properties": {
        "number": {"type": "string"},
        "total": {"type": "number"},
        "lines": {"type": "integer"},
        "paid": {"type": "boolean"},
        "currency": {"type": "string"},
    },
    "required": ["number", "total"],
}
GOOD = {"number": "INV-7", "total": 12.5, "lines": 3, "paid": True, "currency": "IDR"}
ME = of_tenant("acme", frozenset(), new_id())
OTHER = of_tenant("globex", frozenset(), new_id())


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), gateway_secret=SECRET)
    yield gateway
    gateway.close()


class Desk:
    """Takes ZIPs in, has their jobs run, and looks at what became of them."""

    def __init__(self, db: Database, storage: LocalStorage) -> None:
        self.db = db
        self.storage = storage
        self.batches = Batches(db)

    async def receive(
        self,
        *members: tuple[str, str | bytes],
        schema: dict[str, Any] | None = None,
        who: Principal = ME,
        force: bool = False,
    ) -> uuid.UUID:
        content = zipped(*((name, text.encode() if isinstance(text, str) else text) for name, text in members))
        batch_id = new_id()
        stored = await self.storage.put(f"batches/{batch_id}.zip", content)
        received = ReceivedZip(batch_id, stored.key, "mixed.zip", stored.bytes, stored.sha256)
        form = BatchForm(received, "mixed", wanted=WantedFields.parse(json.dumps(schema or SCHEMA)), force=force)
        uploads = BatchUploads(self.db, self.storage)
        return (await uploads.receive(who, form, None, datetime.now(UTC))).batch_id

    async def work(self, *kinds: str) -> list[InlineOutcome]:
        """Run what waits. The jobs' outcomes, the last one the latest."""
        return await run_waiting(self.db, self.storage, kinds=kinds)

    async def enrich(self) -> InlineOutcome:
        """Run the only enrichment that waits, once."""
        [outcome] = await self.work("enrich_file")
        return outcome

    async def due(self, job_id: uuid.UUID) -> None:
        async with self.db.hot() as connection:
            await make_due(connection, job_id)

    async def files(self, batch_id: uuid.UUID, who: Principal = ME) -> list[FileView]:
        return (await self.batches.files(who.owner, batch_id, in_order=True)).files

    async def file(self, batch_id: uuid.UUID) -> FileView:
        [file] = await self.files(batch_id)
        return file

    async def result(self, file: FileView) -> dict[str, Any]:
        assert file.result_key is not None
        assert file.result_bytes is not None
        start = file.result_at or 0
        read = b"".join(
            [chunk async for chunk in self.storage.stream(file.result_key, start, start + file.result_bytes)]
        )
        found: dict[str, Any] = json.loads(read)
        return found

    async def jobs(self, kind: str) -> int:
        async with self.db.hot() as connection:
            return int(await connection.fetchval("SELECT count(*) FROM public.jobs WHERE kind = $1", kind))


@pytest.fixture
def desk(db: Database, tmp_path: Path, gateway: Gateway, monkeypatch: pytest.MonkeyPatch) -> Desk:
    for name, value in {"HOME": tmp_path / "home", "GATEWAY_URL": gateway.url, "GATEWAY_SECRET": SECRET}.items():
        monkeypatch.setenv(f"WAYBILL_{name}", str(value))
    return Desk(db, LocalStorage(tmp_path / "storage"))


Model = Callable[..., Any]


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Model:
    """Returns a function that starts an endpoint with this script, and tells the worker of it."""

    @asynccontextmanager
    async def start(*script: Answer, **settings: Any) -> AsyncIterator[Endpoint]:
        async with model_endpoint(*script) as endpoint:
            given = {"url": endpoint.url, "model": "tiny-1", "key": KEY, "timeout": "20", **settings}
            for name, value in given.items():
                monkeypatch.setenv(f"WAYBILL_LLM_{name.upper()}", str(value))
            yield endpoint

    return start


async def test_fields_are_added_to_what_was_extracted(desk: Desk, model: Model) -> None:
    async with model(says(GOOD), price_in="2", price_out="10") as endpoint:
        batch_id = await desk.receive(
            ("a.txt", "Invoice INV-7"),
            ("b/other.txt", "Invoice INV-8"),
            ("b/twin.txt", "Invoice INV-7"),
            ("c.png", b"\x89PNG\r\n\x1a\n"),
        )
        await desk.work()
    assert len(endpoint.asked) == 2, "the same content is asked about once"
    files = await desk.files(batch_id)
    assert [file.status for file in files] == [FileStatus.COMPLETE] * 3 + [FileStatus.FAILED]
    result = await desk.result(files[0])
    assert result["pages"][0]["text"] == "Invoice INV-7"
    assert result["enrichment"] == {
        "fields": GOOD,
        "model": "tiny-1-2026",
        "prompt_version": "1",
        "tokens": {"in": 120, "out": 30},
        "cost": pytest.approx(0.00054),
        "cut": None,
    }
    assert await desk.result(files[2]) == result
    assert [file.reused for file in files[:3]] == [False, False, True]
    batch = await desk.batches.get(ME.owner, batch_id)
    assert (batch.status, batch.enriched) == (BatchStatus.COMPLETE_WITH_ERRORS, True)
    summary = await desk.batches.summary(ME.owner, batch_id)
    assert summary is not None
    totals = {total["field"]: (total["currency"], total["sum"], total["files"]) for total in summary["totals"]}
    assert totals == {"total": ("IDR", "37.5", 3), "lines": ("IDR", "9", 3)}
    assert await desk.jobs("summarize_run") == 1


async def test_a_file_that_waits_for_the_model_is_not_done(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)) as endpoint:
        batch_id = await desk.receive(("a.txt", "one"), ("b.txt", "one"))
        await desk.work(*UNPACKING)
        first, twin = await desk.files(batch_id)
        assert (first.status, twin.status) == (FileStatus.QUEUED, FileStatus.QUEUED)
        assert first.job_id == twin.job_id
        batch = await desk.batches.get(ME.owner, batch_id)
        assert (batch.status, batch.progress) == (BatchStatus.PROCESSING, 0.0)
        assert not endpoint.asked
        await desk.work()
    assert (await desk.batches.get(ME.owner, batch_id)).status is BatchStatus.COMPLETE


async def test_without_a_schema_nothing_is_sent(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)) as endpoint:
        content = zipped(("a.txt", b"secret"))
        batch_id = new_id()
        stored = await desk.storage.put(f"batches/{batch_id}.zip", content)
        form = BatchForm(ReceivedZip(batch_id, stored.key, "a.zip", stored.bytes, stored.sha256), "a")
        await BatchUploads(desk.db, desk.storage).receive(ME, form, None, datetime.now(UTC))
        await desk.work()
    assert not endpoint.asked
    assert "enrichment" not in await desk.result(await desk.file(batch_id))


async def test_the_same_question_is_not_asked_twice(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)) as endpoint:
        await desk.receive(("a.txt", "one"))
        await desk.work()
        again = await desk.receive(("elsewhere.txt", "one"), force=True)
        await desk.work()
        assert len(endpoint.asked) == 1
        file = await desk.file(again)
        assert (file.status, file.reused) == (FileStatus.COMPLETE, True)
        assert (await desk.result(file))["enrichment"]["fields"] == GOOD
        summary = await desk.batches.summary(ME.owner, again)
        assert summary is not None
        assert [total["sum"] for total in summary["totals"]] == ["3", "12.5"], "amounts are copied, too"

        await desk.receive(("a.txt", "one"), schema={**SCHEMA, "title": "another"})
        await desk.work()
        assert len(endpoint.asked) == 2, "another schema is another question"
        await desk.receive(("a.txt", "one"), who=OTHER)
        await desk.work()
        assert len(endpoint.asked) == 3, "and so is somebody else's"
    async with model(says(GOOD), model="tiny-2") as endpoint:
        await desk.receive(("a.txt", "one"), force=True)
        await desk.work()
        assert len(endpoint.asked) == 1, "and another model's"


async def test_a_failed_file_is_asked_about_again_without_being_extracted_again(desk: Desk, model: Model) -> None:
    async with model(says("no JSON")):
        batch_id = await desk.receive(("a.txt", "Invoice"), ("twin.txt", "Invoice"))
        await desk.work()
        job_id = (await desk.files(batch_id))[0].job_id
        assert job_id is not None
        outcomes = []
        for _ in range(3):
            await desk.due(job_id)
            outcomes.append(await desk.enrich())
    assert [outcome.attempts for outcome in outcomes] == [2, 3, 4]
    assert outcomes[-1].state is State.DEAD_LETTER
    await desk.work()
    files = await desk.files(batch_id)
    assert [file.status for file in files] == [FileStatus.FAILED] * 2
    assert files[0].error is not None
    assert files[0].error.error_type is ErrorType.LLM_ERROR
    assert files[0].error.key == "batches.model.misfit"
    async with model(says(GOOD)):
        await desk.batches.retry(ME.owner, batch_id)
        await desk.work()
    files = await desk.files(batch_id)
    assert [file.status for file in files] == [FileStatus.COMPLETE] * 2
    assert (await desk.result(files[1]))["pages"][0]["text"] == "Invoice"
    assert await desk.jobs("extract_file") == 1
    assert (await desk.batches.get(ME.owner, batch_id)).status is BatchStatus.COMPLETE


async def test_what_was_extracted_is_forgotten_with_its_object(desk: Desk, model: Model) -> None:
    """Then a retry extracts it again, from the file."""
    async with model(refuses(400, "no", code="content_filter")):
        batch_id = await desk.receive(("a.txt", "Invoice"))
        await desk.work()
    assert (await desk.file(batch_id)).status is FileStatus.FAILED
    async with desk.db.hot() as connection, connection.transaction():
        extraction = await connection.fetchval("SELECT id FROM public.jobs WHERE kind = 'extract_file'")
        await retention.remove_results(connection, [extraction])
    async with model(says(GOOD)):
        await desk.batches.retry(ME.owner, batch_id)
        await desk.work()
    assert (await desk.file(batch_id)).status is FileStatus.COMPLETE
    assert await desk.jobs("extract_file") == 2


async def test_enriched_results_leave_with_their_age(desk: Desk, model: Model, clock: Clock) -> None:
    async with model(says(GOOD)):
        batch_id = await desk.receive(("a.txt", "Invoice"))
        await desk.work()
    [rule] = [rule for rule in RETENTION.rules if rule.name == "batch_results"]
    async with desk.db.hot() as connection, connection.transaction():
        jobs = [row["id"] for row in await connection.fetch("SELECT id FROM public.jobs")]
        assert await rule.due(connection, jobs, 30) == []
        await clock.forward(31 * 86400)
        due = await rule.due(connection, jobs, 30)
        assert len(due) == 2, "what was extracted, and what was made of it"
        await rule.remove(connection, due, 30)
    assert (await desk.file(batch_id)).status is FileStatus.EXPIRED
    assert (await desk.batches.get(ME.owner, batch_id)).status is BatchStatus.EXPIRED


async def test_a_cancelled_file_goes_on_where_it_was(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)) as endpoint:
        batch_id = await desk.receive(("a.txt", "one"))
        await desk.work(*UNPACKING)
        await desk.batches.cancel(ME.owner, batch_id)
        await desk.work()
        assert (await desk.file(batch_id)).status is FileStatus.CANCELLED
        assert not endpoint.asked
        await desk.batches.retry(ME.owner, batch_id)
        await desk.work()
    assert (await desk.file(batch_id)).status is FileStatus.COMPLETE
    assert await desk.jobs("extract_file") == 1


async def test_content_that_the_provider_forbids_fails_at_once(desk: Desk, model: Model) -> None:
    async with model(refuses(400, "no", code="content_filter")) as endpoint:
        batch_id = await desk.receive(("a.txt", "one"))
        await desk.work()
    error = (await desk.file(batch_id)).error
    assert error is not None
    assert (error.key, error.error_type) == ("batches.model.filtered", ErrorType.PERMANENT)
    assert len(endpoint.asked) == 1


async def test_a_file_without_text_is_not_sent(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)) as endpoint:
        batch_id = await desk.receive(("a.csv", " \n \n"))
        await desk.work()
    error = (await desk.file(batch_id)).error
    assert error is not None
    assert error.error_type in (ErrorType.PARSE_ERROR, ErrorType.PERMANENT)
    assert not endpoint.asked


async def test_a_long_text_is_cut_and_the_result_says_so(desk: Desk, model: Model) -> None:
    async with model(says(GOOD), max_input="1000") as endpoint:
        batch_id = await desk.receive(("a.txt", "word " * 1000))
        await desk.work()
    assert len(endpoint.documents()[0]) < 1200
    enrichment = (await desk.result(await desk.file(batch_id)))["enrichment"]
    assert enrichment["cut"]["sent"] == 1000
    assert enrichment["cut"]["characters"] > 4000


async def test_long_work_is_done_in_another_process(desk: Desk, model: Model) -> None:
    """A large file is read there, and an answer that takes long to check is checked there."""
    branch = {"anyOf": [{"type": "object", "required": [f"k{number}"]} for number in range(100)]}
    schema = {"type": "object", "properties": {"items": {"type": "array", "items": branch}}}
    items = [{"k99": 1}] * 300
    async with model(says({"items": [*items, {}]}), says({"items": items}), max_input="2000") as endpoint:
        content = "\n".join(f"line {number}" for number in range(40_000))
        batch_id = await desk.receive(("a.txt", content), schema=schema)
        await desk.work()
    assert "line 99" in endpoint.documents()[0]
    result = await desk.result(await desk.file(batch_id))
    assert result["enrichment"]["fields"] == {"items": items}
    assert result["pages"][-1]["text"].endswith("line 39999")
    assert "items/300" in endpoint.asked[1]["messages"][-1]["content"]


# Trouble at the endpoint


async def test_a_refused_key_costs_nothing_and_says_what_to_do(desk: Desk, model: Model) -> None:
    async with model(refuses(401, "Incorrect API key provided")):
        await desk.receive(("a.txt", "one"))
        await desk.work(*UNPACKING)
        outcome = await desk.enrich()
    assert (outcome.state, outcome.attempts, outcome.code) == (State.SCHEDULED, 0, Code.LLM_ERROR)
    assert outcome.message is not None
    assert "WAYBILL_LLM_KEY" in outcome.message
    async with model(says(GOOD)):
        await desk.due(outcome.id)
        assert (await desk.enrich()).state is State.SUCCEEDED


async def test_an_endpoint_that_wants_us_to_wait_stops_the_fleet_and_ends_as_rate_limit(
    desk: Desk, model: Model, clock: Clock
) -> None:
    async with model(refuses(429, "slow down", Retry_After="30")) as endpoint:
        batch_id = await desk.receive(("a.txt", "one"))
        await desk.work(*UNPACKING)
        outcome = await desk.enrich()
        assert (outcome.state, outcome.attempts, outcome.code) == (State.SCHEDULED, 0, Code.RATE_LIMITED)
        assert outcome.due_in is not None
        assert 29 < outcome.due_in < 40
        async with desk.db.hot() as connection:
            cools = await connection.fetchval(
                "SELECT cooldown_until > now() FROM public.breakers WHERE name = 'language_model'"
            )
        assert cools
        await clock.forward(13 * 3600)  # longer than anybody's patience
        while outcome.state is State.SCHEDULED:
            await desk.due(outcome.id)
            outcome = await desk.enrich()
            await clock.forward(600)
    assert outcome.state is State.DEAD_LETTER
    await desk.work()
    error = (await desk.file(batch_id)).error
    assert error is not None
    assert error.error_type is ErrorType.RATE_LIMIT
    assert len(endpoint.asked) == 5


async def test_a_broken_endpoint_opens_its_own_breaker(desk: Desk, model: Model) -> None:
    async with model(refuses(500)):
        await desk.receive(*((f"{number}.txt", f"text {number}") for number in range(12)))
        await desk.work(*UNPACKING)
        with pytest.raises(Conflict, match="breaker of language_model is open"):
            await desk.work("enrich_file")
    async with desk.db.hot() as connection:
        charged = await connection.fetchval("SELECT sum(attempts) FROM public.jobs WHERE kind = 'enrich_file'")
        rows = await connection.fetch("SELECT name, state FROM public.breakers")
    states = {row["name"]: row["state"] for row in rows}
    assert charged == 0, "an outage costs nobody anything"
    assert states["language_model"] == "open"
    assert states.get("gateway", "closed") == "closed"


async def test_a_worker_without_a_model_has_files_wait(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAYBILL_LLM_URL", raising=False)
    await desk.receive(("a.txt", "one"))
    await desk.work(*UNPACKING)
    outcome = await desk.enrich()
    assert (outcome.state, outcome.attempts) == (State.SCHEDULED, 0)
    assert outcome.message is not None
    assert "WAYBILL_LLM_URL" in outcome.message


# Tokens per minute


async def test_a_tenant_beyond_its_tokens_waits_at_no_cost_and_delays_nobody(
    desk: Desk, model: Model, clock: Clock
) -> None:
    used = {"prompt_tokens": 900, "completion_tokens": 100}
    async with model(says(GOOD, usage=used), tokens_per_minute="1000", max_output="100") as endpoint:
        await desk.receive(("a.txt", "one"), ("b.txt", "two"))
        await desk.work(*UNPACKING)
        first, second = await desk.work("enrich_file")
        assert (first.state, second.state) == (State.SUCCEEDED, State.SCHEDULED)
        assert (second.attempts, len(endpoint.asked)) == (0, 1)
        assert second.due_in is not None
        assert 10 < second.due_in < 61
        other = await desk.receive(("a.txt", "three"), who=OTHER)
        await desk.work()
        assert [file.status for file in await desk.files(other, OTHER)] == [FileStatus.COMPLETE]
        await clock.forward(61)
        await desk.due(second.id)
        assert (await desk.enrich()).state is State.SUCCEEDED


async def test_tokens_that_were_not_used_are_given_back(desk: Desk, model: Model) -> None:
    used = {"prompt_tokens": 50, "completion_tokens": 10}
    async with model(says(GOOD, usage=used), tokens_per_minute="3000", max_output="2000"):
        await desk.receive(*((f"{number}.txt", f"text {number}") for number in range(6)))
        outcomes = await desk.work(*UNPACKING, "enrich_file")
    assert {outcome.state for outcome in outcomes} == {State.SUCCEEDED}


# Secrets


async def test_the_log_shows_neither_the_key_nor_the_text_nor_the_answer(
    desk: Desk, model: Model, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = refuses(400, f"Incorrect key {KEY}")
    with configured_log("worker", log_level="debug"):
        async with model(says(GOOD)):
            await desk.receive(("a.txt", "Confidential text"))
            await desk.work()
        async with model(bad):
            await desk.receive(("b.txt", "Confidential words"))
            await desk.work()
        async with model(says({"number": ["INV-7"], "total": 1})):
            await desk.receive(("d.txt", "Confidential numbers"))
            await desk.work()
        async with model(refuses(401, f"Incorrect key {KEY}")):
            await desk.receive(("c.txt", "Confidential letters"))
            await desk.work()
    written = "".join(capfd.readouterr())
    assert "language_model_answered" in written
    assert "tokens_in" in written
    assert "language_model_failed" in written
    for secret in (KEY, "Confidential", "INV-7"):
        assert secret not in written
    async with desk.db.hot() as connection:
        kept = await connection.fetchval(
            "SELECT string_agg(j::text, '') FROM (SELECT to_jsonb(jobs) AS j FROM public.jobs"
            " UNION ALL SELECT to_jsonb(job_events) FROM public.job_events"
            " UNION ALL SELECT to_jsonb(batch_files) FROM public.batch_files) AS rows"
        )
    assert KEY not in kept
    assert "***" in kept


async def test_the_row_says_what_made_its_result(desk: Desk, model: Model) -> None:
    async with model(says(GOOD)):
        await desk.receive(("a.txt", "one"))
        await desk.work()
    async with desk.db.hot() as connection:
        made_by = await connection.fetchval("SELECT extractor FROM public.batch_files")
    wanted = WantedFields.parse(json.dumps(SCHEMA))
    assert wanted is not None
    assert made_by == f"{EXTRACTOR}, tiny-1, prompt 1, schema {wanted.digest}"

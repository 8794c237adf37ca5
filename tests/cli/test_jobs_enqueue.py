"""`waybill jobs enqueue` and `waybill schedules add` know the kinds of every installed pipeline."""

from __future__ import annotations

import uuid

import pytest

from support.command_line import Waybill
from support.engine import row
from waybill.db.database import Connection
from waybill.errors import NotFound
from waybill.pipelines import installed, resolve
from waybill_cli.jobs.enqueue import kind_names, known_kind
from waybill_engine import enqueued_elsewhere
from waybill_engine.kinds import SELFTEST


def test_the_kinds_are_those_of_the_pipelines_and_the_engines_own() -> None:
    declared = {kind.name for pipeline in installed() if pipeline.kinds for kind in resolve(pipeline.kinds)}
    assert "convert_pdf" in declared
    assert declared | {SELFTEST.name} <= set(kind_names())
    assert known_kind("selftest") is SELFTEST


def test_a_kind_that_no_pipeline_has_is_refused_with_the_list() -> None:
    with pytest.raises(NotFound, match=r"There is no kind 'no_such'\. Known kinds: .*convert_pdf"):
        known_kind("no_such")


async def test_a_pipelines_job_is_enqueued_with_the_rules_of_its_kind(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("jobs", "enqueue", "convert_pdf", "--tenant", "acme", "--payload", '{"mapping": "m"}')
    assert ran.code == 0, ran.err
    job = await row(hot, uuid.UUID(ran.out.strip()))
    assert (job["kind"], job["queue"], job["tenant"], job["payload"]) == (
        "convert_pdf",
        "convert",
        "acme",
        '{"mapping": "m"}',
    )
    assert (job["max_attempts"], job["time_limit"]) == (4, 600)


async def test_a_job_is_counted_where_the_api_finds_it_once_the_command_is_gone(
    waybill: Waybill, hot: Connection
) -> None:
    for _ in range(2):
        ran = await waybill("jobs", "enqueue", "selftest", "--unique", "only")
        assert ran.code == 0, ran.err
    assert await enqueued_elsewhere.totals(hot) == {("selftest", "command"): 1}, "the second found the first"


async def test_a_pipelines_job_can_be_scheduled(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("schedules", "add", "nightly", "convert_pdf", "--cron", "30 2 * * *")
    assert ran.code == 0, ran.err
    assert await hot.fetchval("SELECT kind || ' in ' || queue FROM schedules") == "convert_pdf in convert"


async def test_an_enqueued_job_is_as_asked(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill(
        *("jobs", "enqueue", "selftest", "--payload", '{"steps": 2}', "--tenant", "acme"),
        *("--delay", "1h", "--priority", -3, "--unique", "only", "--sequence", "one by one", "--json"),
    )
    found = await row(hot, uuid.UUID(ran.json["id"]))
    assert (found["tenant"], found["state"], found["priority"], found["unique_key"]) == (
        "acme",
        "scheduled",
        -3,
        "only",
    )
    assert (found["payload"], found["sequence_key"]) == ('{"steps": 2}', "one by one")
    again = await waybill("jobs", "enqueue", "selftest", "--tenant", "acme", "--unique", "only", "--json")
    assert again.json == {"id": ran.json["id"], "created": False}


async def test_a_payload_may_come_from_standard_input(waybill: Waybill, hot: Connection) -> None:
    ran = await waybill("jobs", "enqueue", "selftest", "--payload", "-", typed='{"steps": 7}')
    assert (await row(hot, uuid.UUID(ran.out.strip())))["payload"] == '{"steps": 7}'


async def test_an_unknown_kind_is_refused_with_the_list(waybill: Waybill) -> None:
    ran = await waybill("jobs", "enqueue", "selftset")
    assert (ran.code, ran.out) == (1, "")
    assert "Known kinds: " in ran.err
    assert "selftest" in ran.err


@pytest.mark.parametrize("payload", ["[]", "{", '{"a": NaN}', '"text"'])
async def test_a_payload_that_is_no_json_object_is_a_usage_error(waybill: Waybill, payload: str) -> None:
    assert (await waybill("jobs", "enqueue", "selftest", "--payload", payload)).code == 2


async def test_what_cannot_be_stored_is_told_without_a_traceback(waybill: Waybill) -> None:
    ran = await waybill("jobs", "enqueue", "selftest", "--payload", r'{"a": "\u0000"}')
    assert (ran.code, ran.err) == (1, "A job's payload must not have NUL characters.\n")
    ran = await waybill("queue", "pause", "default", "--reason", "half a character: \udcff")
    assert ran.code == 1
    assert "Traceback" not in ran.err

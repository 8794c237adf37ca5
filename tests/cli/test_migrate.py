"""`waybill migrate`: from which revision to which, branch by branch, and never past what this program knows."""

from __future__ import annotations

from support.command_line import Waybill
from waybill.db.database import Connection
from waybill.db.schema import branch_statuses

LATEST = {one.branch: one.wanted for one in branch_statuses({})}


async def test_a_current_schema_is_left_alone(waybill: Waybill, database_url: str) -> None:
    said = (await waybill("migrate", "--json")).json
    assert said == {
        "branches": [{"branch": name, "from": wanted, "to": wanted} for name, wanted in LATEST.items()],
        "changed": False,
    }
    branches = [[name, wanted] for name, wanted in LATEST.items()]
    for arguments, first in ((("migrate",), "was up to date already:"), (("migrate", "--check"), "is up to date:")):
        told = await waybill(*arguments)
        assert told.code == 0
        assert told.lines[0] == f"The schema {first}"
        assert [line.split() for line in told.lines[1:]] == branches


async def test_an_empty_database_is_behind(bare: Waybill, empty_database_url: str) -> None:
    given = {"WAYBILL_DATABASE_URL": empty_database_url}
    checked = await bare("migrate", "--check", "--json", **given)
    assert checked.code == 1
    assert checked.json == {
        "branches": [{"branch": name, "current": None, "wanted": wanted} for name, wanted in LATEST.items()],
        "revisions": [],
        "up_to_date": False,
    }
    done = (await bare("migrate", **given)).lines
    assert done[0] == "Migrated the schema:"
    assert [line.split() for line in done[1:]] == [[name, "empty", "->", wanted] for name, wanted in LATEST.items()]


async def test_a_branch_that_is_behind_is_named(waybill: Waybill, hot: Connection) -> None:
    await hot.execute("DELETE FROM schema_revisions WHERE branch = 'convert'")
    ran = await waybill("migrate", "--check")
    assert (ran.code, ran.out) == (1, "")
    assert f"convert is missing and needs {LATEST['convert']}" in ran.err
    assert "waybill migrate" in (await waybill("jobs", "ls")).err


async def test_a_newer_schema_that_this_release_can_run_on_is_left_alone(waybill: Waybill, hot: Connection) -> None:
    await hot.execute("INSERT INTO schema_revisions (revision, branch) VALUES ('engine_9999', 'engine')")
    for arguments in (("migrate", "--check"), ("migrate",)):
        ran = await waybill(*arguments)
        assert ran.code == 0
        assert f"engine_9999, newer than this release ({LATEST['engine']}), which can run on it" in ran.out
    assert (await waybill("jobs", "ls")).code == 0


async def test_a_schema_that_needs_a_newer_release_is_refused(waybill: Waybill, hot: Connection) -> None:
    await hot.execute("INSERT INTO schema_revisions VALUES ('engine_9999', 'engine', '99.1')")
    for arguments, code in ((("migrate", "--check"), 1), (("migrate",), 2), (("jobs", "ls"), 2)):
        ran = await waybill(*arguments)
        assert (ran.code, ran.out) == (code, "")
        assert "engine_9999 needs release 99.1 of engine or a newer one" in ran.err
        assert "Install that release" in ran.err

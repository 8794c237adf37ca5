"""`waybill migrate`: from which revision to which, and never past what this program knows."""

from __future__ import annotations

from cli.conftest import Waybill
from waybill.db.database import Connection
from waybill.db.schema import head


async def test_a_current_schema_is_left_alone(waybill: Waybill, database_url: str) -> None:
    assert (await waybill("migrate", "--json")).json == {"from": head(), "to": head(), "changed": False}
    assert (await waybill("migrate")).out == f"The schema was up to date already, at {head()}.\n"
    assert (await waybill("migrate", "--check")).out == f"The schema is up to date, at {head()}.\n"


async def test_an_empty_database_is_behind(bare: Waybill, empty_database_url: str) -> None:
    given = {"WAYBILL_DATABASE_URL": empty_database_url}
    checked = await bare("migrate", "--check", "--json", **given)
    assert checked.code == 1
    assert checked.json == {"current": None, "wanted": head(), "up_to_date": False}
    assert (await bare("migrate", "--json", **given)).json == {"from": None, "to": head(), "changed": True}


async def test_a_schema_from_the_future_is_refused(waybill: Waybill, hot: Connection) -> None:
    await hot.execute("UPDATE alembic_version SET version_num = '9999'")
    for arguments, code in ((("migrate", "--check"), 1), (("migrate",), 2), (("jobs", "ls"), 2)):
        ran = await waybill(*arguments)
        assert (ran.code, ran.out) == (code, "")
        assert "install" in ran.err.lower()
        assert "9999" in ran.err

"""`waybill janitor`, `waybill tenant hold|release|retention|erase`, `waybill storage migrate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clock import Clock
from support.command_line import Waybill
from support.janitor import DAY, document, stored_keys
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.storage import LocalStorage, upload_key


@pytest.mark.heavy
async def test_run_and_history(
    process: Waybill, waybill: Waybill, database_url: str, hot: Connection, tmp_path: Path, clock: Clock
) -> None:
    storage = LocalStorage(tmp_path / "storage")
    await document(hot, storage)
    await clock.forward(40 * DAY)
    nothing = await waybill("janitor", "history")
    assert (nothing.code, nothing.out) == (0, "")
    place = {"WAYBILL_DATABASE_URL": database_url, "WAYBILL_STORAGE_URL": str(tmp_path / "storage")}
    looked = await process("janitor", "run", "--dry-run", **place)
    assert looked.code == 0
    assert "documents    1 documents past their time, " in looked.out
    assert len(await stored_keys(storage)) == 3
    ran = await process("janitor", "run", "--json", **place)
    assert ran.code == 0
    assert {task["task"]: task["done"] for task in ran.json["tasks"]}["garbage"] == {"objects": 3}
    assert await stored_keys(storage) == set()

    listed = await waybill("janitor", "history")
    assert listed.lines[0].split() == ["RUN", "STARTED", "TOOK", "OUTCOME", "BY", "DID"]
    assert (
        "documents: 4 bytes, 1 documents; results: 8 bytes, 1 expired, 2 results; shelf: 1 shelved; garbage"
        in listed.lines[1]
    )
    tasks = await waybill("janitor", "history", "--last")
    assert "dead_letters: old 0, waiting 0, oldest_seconds 0" in tasks.out
    told = (await waybill("janitor", "history", "--json")).json
    assert told["totals"]["documents"] == {"documents": 1, "bytes": 4}
    assert told["runs"][0]["outcome"] == "done"


async def test_a_tenant_is_held_and_released(waybill: Waybill, hot: Connection) -> None:
    said = await waybill("tenant", "hold", "acme", "--reason", "case 12")
    assert said.out.startswith("Tenant acme is under legal hold.")
    assert await hot.fetchval("SELECT hold_reason FROM tenants WHERE hold_at IS NOT NULL") == "case 12"
    assert "since" in (await waybill("tenant", "ls")).lines[1]
    refused = await waybill("tenant", "erase", "acme", "--yes")
    assert refused.code == 1
    assert "legal hold" in refused.err
    assert (await waybill("tenant", "release", "acme")).out.startswith("Tenant acme is released.")
    assert (await waybill("tenant", "release", "acme")).out == "Tenant acme was not under legal hold.\n"


async def test_a_tenant_gets_limits_of_its_own(waybill: Waybill, hot: Connection) -> None:
    assert "default" in (await waybill("tenant", "retention", "acme")).out
    told = await waybill("tenant", "retention", "acme", "--documents", "1.5", "--on-download", "--json")
    assert (told.json["pdf_ttl_days"], told.json["xml_on_download"], told.json["xml_ttl_days"]) == (1.5, True, None)
    shown = await waybill("tenant", "retention", "acme", "--results", "60", "--documents", "default")
    assert ["documents", "default"] in [line.split(maxsplit=1) for line in shown.lines]
    assert "60 days" in shown.out
    assert "removed" in next(line for line in shown.lines if line.startswith("results once downloaded"))
    told = await waybill("tenant", "retention", "acme", "--keep", "downloads=3", "--keep", "events=default", "--json")
    assert told.json["ages"] == {"downloads": 3, "results": 60}
    assert told.json["xml_on_download"] is False
    unknown = await waybill("tenant", "retention", "acme", "--keep", "parcels=3")
    assert unknown.code == 1
    rules = "batch_files, batch_zips, batch_results, documents, results, downloads, events, jobs"
    assert f"There is no retention rule parcels. There are: {rules}." in unknown.err
    assert (await waybill("tenant", "retention", "acme", "--results", "soon")).code == 2
    assert (await waybill("tenant", "retention", "acme", "--results", "-1")).code == 1


async def test_a_tenant_is_erased_after_its_name_was_typed(waybill: Waybill, hot: Connection, tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path / "storage")
    await document(hot, storage)
    await document(hot, storage, tenant="other")
    place = {"WAYBILL_STORAGE_URL": str(tmp_path / "storage")}
    refused = await waybill("tenant", "erase", "acme", typed="acne\n", **place)
    assert refused.code == 1
    assert await hot.fetchval("SELECT count(*) FROM jobs") == 2
    said = await waybill("tenant", "erase", "acme", typed="acme\n", **place)
    assert said.code == 0
    assert "Tenant acme is erased: 1 job and 3 files, within" in said.out
    assert [row["tenant"] for row in await hot.fetch("SELECT tenant FROM jobs")] == ["other"]
    assert len(await stored_keys(storage)) == 3
    told = await waybill("tenant", "erase", "nobody", "--yes", "--json", **place)
    assert told.json == {"tenant": "nobody", "finished": True, "jobs": 0, "files": 0}


async def test_everything_is_copied_verified_and_the_rest_later(
    waybill: Waybill, hot: Connection, tmp_path: Path
) -> None:
    here, there = LocalStorage(tmp_path / "here"), LocalStorage(tmp_path / "there")
    for size in (0, 10, 3_000_000):
        await here.put(upload_key(new_id()), b"x" * size)
    said = await waybill("storage", "migrate", tmp_path / "here", tmp_path / "there")
    assert (said.code, said.out) == (
        0,
        "3 objects copied and verified (3.0 MB), 0 were there already (their size compared).\n",
    )
    assert await stored_keys(there) == await stored_keys(here)
    late = upload_key(new_id())
    await here.put(late, b"late")
    told = await waybill("storage", "migrate", tmp_path / "here", tmp_path / "there", "--json")
    assert told.json == {"objects": 1, "bytes": 4, "known": 3, "lost": 0, "gone": 0, "failed": []}
    assert await there.get(late) == b"late"
    await there.delete(late)
    again = await waybill("storage", "migrate", tmp_path / "here", tmp_path / "there", "--verify")
    assert again.out == (
        "1 object copied and verified (4 B), 3 were there already (their content compared).\n"
        "1 earlier copy was missing or different at the target, and copied again.\n"
    )
    same = await waybill("storage", "migrate", tmp_path / "here", tmp_path / "here")
    assert same.code == 1
    assert (await waybill("storage", "migrate", "ftp://x", tmp_path / "here")).code == 2

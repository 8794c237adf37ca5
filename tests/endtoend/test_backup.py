"""docs/backup.md for a database and a storage of one's own: a running system is taken away and comes back elsewhere."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import asyncpg
import pytest

from endtoend.conftest import MakeStack
from support.backups import command_lines, run_lines
from support.command_line import EXECUTABLE
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import eventually
from support.stack import Stack

pytestmark = pytest.mark.timeout(300)


def pdf(seed: int) -> bytes:
    return print_invoice(make_invoice(seed, 3), REFERENCE)


async def test_a_system_that_is_gone_comes_back_in_another_place(
    make_stack: MakeStack, customer: Callable[[Stack], Customer], empty_database_url: str, tmp_path: Path
) -> None:
    stack = await make_stack("api", "gateway", "worker")
    someone = customer(stack)
    done = await someone.upload("done.pdf", pdf(1))
    assert (await someone.ended(done["id"]))["status"] == "complete"
    result = await someone.download(done["id"])
    broken = await someone.upload("broken.pdf", b"%PDF-1.7 and nothing more")
    assert (await someone.ended(broken["id"]))["status"] == "failed"
    stack.stop("worker")
    waiting = [await someone.upload(f"waiting-{seed}.pdf", pdf(seed)) for seed in (2, 3)]
    running = await someone.upload("running.pdf", pdf(4))
    (worker,) = await stack.sql("SELECT id FROM workers")  # killed before it could say that it stops
    await stack.become(running["id"], "running", lease_owner=worker["id"])

    backup, restore = command_lines("With a database and a storage of your own")
    backups = tmp_path / "backups"
    here = {"WAYBILL_DATABASE_URL": stack.database_url, "WAYBILL_STORAGE_URL": str(stack.home / "storage")}
    await asyncio.to_thread(run_lines, backup, backups, tmp_path, here)
    late = await someone.upload("late.pdf", pdf(5))
    cookies = someone.http.cookies
    stack.close()
    shutil.rmtree(stack.home)

    there = {"WAYBILL_DATABASE_URL": empty_database_url, "WAYBILL_STORAGE_URL": str(tmp_path / "new")}
    said = await asyncio.to_thread(run_lines, restore, backups, tmp_path, there)
    assert "looked at everything: every object that a row names is there" in said
    assert "1 were running then" in said

    elsewhere = Stack(empty_database_url, tmp_path / "other", WAYBILL_STORAGE_URL=str(tmp_path / "new"))
    elsewhere.folder.mkdir()
    try:
        await elsewhere.start_all("api", "gateway", "worker")
        visitor = customer(elsewhere)
        visitor.http.cookies = cookies  # sessions are signed with a secret that came along
        assert await visitor.download(done["id"]) == result
        for job in (*waiting, running):
            assert (await visitor.ended(job["id"]))["status"] == "complete"
        (row,) = await elsewhere.sql("SELECT attempts, crashes FROM jobs WHERE id = $1::text::uuid", running["id"])
        assert (row["attempts"], row["crashes"]) == (0, 0), "nobody is to blame"
        assert (await visitor.job(broken["id"]))["status"] == "failed"
        assert (await visitor.http.get(f"/api/jobs/{late['id']}")).status_code == 404
    finally:
        elsewhere.close()


async def test_a_restore_is_refused_while_services_are_connected(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = await make_stack("api")
    environment = {
        **os.environ,
        "WAYBILL_DATABASE_URL": stack.database_url,
        "WAYBILL_STORAGE_URL": str(stack.home / "storage"),
    }
    folder = tmp_path / "backups"

    def waybill(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(EXECUTABLE), *arguments], env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert (await asyncio.to_thread(waybill, "backup", "--to", str(folder))).returncode == 0
    (backup,) = [each for each in folder.iterdir() if not each.name.startswith(".")]

    async def names_it() -> bool:
        refused = await asyncio.to_thread(waybill, "restore", str(backup), "--replace")
        assert refused.returncode == 1, refused.stdout + refused.stderr
        return "waybill api" in refused.stderr and "Stop all services" in refused.stderr

    await eventually(names_it, every=0.5, what="the API is named")
    connection = await asyncpg.connect(stack.database_url)
    assert await connection.fetchval("SELECT count(*) FROM schema_revisions") > 0, "nothing was touched"
    await connection.close()

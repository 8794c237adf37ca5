"""docs/backup.md for `make up`: a machine is lost while it works, and everything comes back on another one."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from local.processes import Up, processes_of
from support.backups import command_lines, run_lines
from support.child_processes import free_port
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.patience import eventually
from waybill_cli.local.postgres import EmbeddedPostgres

READY = "Waybill is ready"


class Machine:
    """A folder in which somebody runs `make up`."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700)
        self.folder = folder
        self.home = folder / ".waybill"
        self.port, self.gateway_port = free_port(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.up: Up | None = None

    def start(self) -> Up:
        ports = {"WAYBILL_API_PORT": str(self.port), "WAYBILL_GATEWAY_PORT": str(self.gateway_port)}
        self.up = Up(self.home, ports)
        self.up.wait_for(READY)
        return self.up

    def lose(self) -> None:
        """Kill everything, and wipe the disk."""
        if self.up is not None:
            self.up.close()
            self.up = None
        EmbeddedPostgres(self.home).destroy()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[list[Machine]]:
    made = [Machine(tmp_path / name) for name in ("one", "two")]
    yield made
    for each in made:
        each.lose()


@pytest.mark.heavy
@pytest.mark.timeout(300)
async def test_a_lost_machine_comes_back_on_another_one(machines: list[Machine], tmp_path: Path) -> None:
    here, there = machines
    backups = tmp_path / "backups"
    backup, restore = command_lines("With `make up`")
    up = here.start()
    someone = Customer(here.url)
    done = await someone.upload("done.pdf", print_invoice(make_invoice(1, 3), REFERENCE))
    assert (await someone.ended(done["id"]))["status"] == "complete"
    result = await someone.download(done["id"])
    worker = next(each for each in processes_of(here.home) if "waybill_worker" in each.cmdline())
    worker.suspend()
    waiting = await someone.upload("waiting.pdf", print_invoice(make_invoice(2, 3), REFERENCE))

    await asyncio.to_thread(run_lines, backup, backups, here.folder, {})
    cookies = someone.http.cookies
    await someone.leave()
    up.process.kill()
    here.lose()

    said = await asyncio.to_thread(run_lines, restore, backups, there.folder, {})
    assert "looked at everything: every object that a row names is there" in said
    assert not processes_of(there.home), "the database was stopped again"
    there.start()
    visitor = Customer(there.url)
    visitor.http.cookies = cookies
    assert await visitor.download(done["id"]) == result
    assert (await visitor.ended(waiting["id"]))["status"] == "complete"
    await visitor.leave()

    async def is_ready() -> bool:
        return (await asyncio.to_thread(httpx.get, f"{there.url}/readyz", trust_env=False)).status_code == 200

    await eventually(is_ready)
    refused = command_lines("With `make up`")[1]
    with pytest.raises(AssertionError, match="Stop it with Ctrl-C"):
        await asyncio.to_thread(run_lines, refused, backups, there.folder, {})

"""A storage without room is waited for: nothing fails, and nothing is half there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.batch_desk import Desk, batch, counted, made, statuses, text
from support.clock import Clock
from support.small_disk import SmallDisk, small_disk
from support.zips import zipped
from waybill_engine import State

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "storage", megabytes=8) as disk:
        yield disk


@pytest.fixture
def folder(disk: SmallDisk, tmp_path: Path) -> Path:
    return tmp_path / "storage"


async def test_a_full_storage_is_waited_for(
    disk: SmallDisk, desk: Desk, browser: httpx.AsyncClient, clock: Clock
) -> None:
    new = await made(browser, zipped(("a.txt", text()), ("big.txt", text() + b"x" * 300_000)))
    for kind in ("process_batch", "extract_file") if disk.mounted else ("process_batch",):
        disk.fill()
        outcomes = await desk.work([kind])
        disk.empty()
        assert [(outcome.state, outcome.code) for outcome in outcomes] == [(State.SCHEDULED, "IO_ERROR")] * len(
            outcomes
        )
        assert outcomes
        assert not {"failed", "complete"} & set((await statuses(browser, new)).values())
        await clock.forward(60)
        await desk.work_on([kind])
    await desk.work()
    assert counted(await batch(browser, new)) == {"files": 2, "complete": 2}

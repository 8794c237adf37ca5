"""Operations of a storage are measured, whatever becomes of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from waybill.errors import IoFailure, NotFound
from waybill.storage import LocalStorage
from waybill.storage.measured_storage import MeasuredStorage
from waybill.telemetry.metrics import STORAGE_BYTES, STORAGE_OPERATION


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    yield
    STORAGE_OPERATION.reset()
    STORAGE_BYTES.reset()


@pytest.fixture
def storage(tmp_path: Path) -> MeasuredStorage:
    STORAGE_OPERATION.reset()
    STORAGE_BYTES.reset()
    return MeasuredStorage(LocalStorage(tmp_path))


def counted() -> dict[tuple[str, ...], int]:
    return {labels: sum(one.counts) for labels, one in STORAGE_OPERATION.series()}


async def _broken() -> AsyncIterator[bytes]:
    yield b"some"
    raise ZeroDivisionError


async def test_every_way_an_operation_ends_is_counted(storage: MeasuredStorage, tmp_path: Path) -> None:
    await storage.put("a/b", b"x" * 3_000_000)
    assert len(await storage.get("a/b")) == 3_000_000
    assert sum([len(chunk) async for chunk in storage.stream("a/b", 0, 1000)]) == 1000
    with pytest.raises(NotFound):
        await storage.get("a/c")
    with pytest.raises(ZeroDivisionError):
        await storage.put("a/d", _broken())
    with pytest.raises(IoFailure):
        await MeasuredStorage(LocalStorage(tmp_path / "a" / "b")).put("below/a/file", b"x")
    await storage.delete("a/b")
    assert not await storage.exists("a/b")

    assert counted() == {
        ("put", "ok"): 1,
        ("get", "ok"): 1,
        ("stream", "ok"): 1,
        ("get", "missing"): 1,
        ("put", "aborted"): 1,
        ("put", "failed"): 1,
        ("delete", "ok"): 1,
        ("exists", "ok"): 1,
    }
    assert {labels: one.value for labels, one in STORAGE_BYTES.series()} == {("write",): 3e6, ("read",): 3_001_000}


async def test_a_reader_that_stops_early_is_no_failure(storage: MeasuredStorage) -> None:
    await storage.put("a/b", b"x" * 3_000_000)
    stream = storage.stream("a/b")
    assert await anext(stream)
    await stream.aclose()  # type: ignore[attr-defined]
    assert counted()["stream", "aborted"] == 1

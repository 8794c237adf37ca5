"""Each operation of a storage is one span, with the object's key and size, and never with its content."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.traced import traced
from waybill.errors import NotFound, TooLarge
from waybill.storage import LocalStorage
from waybill.storage.traced_storage import TracedStorage
from waybill.telemetry import spans

MB = 1024 * 1024


async def chunks(count: int) -> AsyncIterator[bytes]:
    for _ in range(count):
        yield b"Zq" * (MB // 2)


async def test_an_operation_is_one_span_however_many_pieces_it_has(tmp_path: Path) -> None:
    storage = TracedStorage(LocalStorage(tmp_path))
    with traced() as export:
        with spans.span("work"):
            await storage.put("a/b.pdf", chunks(5))
            current = spans.current_ids()
            async for _ in storage.stream("a/b.pdf"):
                assert spans.current_ids() == current, "between two pieces, the reader's own span is the current one"
            assert len(await storage.get("a/b.pdf")) == 5 * MB
            await storage.delete_many(["a/b.pdf", "a/c.pdf"])
        work, *done = export()
    names = ["storage put", "storage get", "storage get", "storage delete"]
    assert [span.name for span in done] == names
    assert {span.parent_id for span in done} == {work.span_id}
    assert [span.attributes.get("waybill.storage.bytes") for span in done] == [5 * MB, 5 * MB, 5 * MB, None]
    assert [span.attributes.get("waybill.storage.key") for span in done] == ["a/b.pdf"] * 3 + [None]
    assert not any("Zq" in str(span) for span in done)


async def test_a_failure_is_an_error_with_its_code(tmp_path: Path) -> None:
    storage = TracedStorage(LocalStorage(tmp_path))
    with traced() as export:
        with pytest.raises(TooLarge):
            await storage.put("a/b.pdf", chunks(2), limit=MB)
        with pytest.raises(NotFound):
            async for _ in storage.stream("a/b.pdf"):
                pass
        done = export()
    assert [(span.name, span.attributes["error.type"]) for span in done] == [
        ("storage put", "TOO_LARGE"),
        ("storage get", "NOT_FOUND"),
    ]


async def test_a_reader_that_stops_early_has_not_failed(tmp_path: Path) -> None:
    storage = TracedStorage(LocalStorage(tmp_path))
    await storage.put("a/b.pdf", chunks(3))
    with traced() as export:
        reading = storage.stream("a/b.pdf")
        assert await anext(reading)
        await reading.aclose()  # type: ignore[attr-defined]
        (span,) = export()
    assert not span.failed
    assert span.attributes["waybill.storage.bytes"] == MB

"""Ids are UUIDv7: unique, growing, and carrying their time."""

from __future__ import annotations

import itertools
import threading
import uuid
from datetime import UTC, datetime, timedelta

from waybill.ids import first_id_at, made_at, new_id


def test_ids_are_version_seven_and_strictly_grow() -> None:
    ids = [new_id() for _ in range(20_000)]
    assert all(one.version == 7 and one.variant == uuid.RFC_4122 for one in ids)
    assert all(earlier < later for earlier, later in itertools.pairwise(ids))


def test_ids_of_several_threads_are_all_different() -> None:
    ids: list[uuid.UUID] = []
    threads = [threading.Thread(target=lambda: ids.extend([new_id() for _ in range(5_000)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(ids)) == 20_000


def test_an_id_tells_when_it_was_made() -> None:
    before = datetime.now(UTC)
    made = new_id()
    assert abs(made_at(made) - before) < timedelta(seconds=5)
    assert first_id_at(before - timedelta(seconds=1)) < made < first_id_at(before + timedelta(seconds=5))

"""What is stored can be fetched as it was, whole or not at all: every storage keeps these promises."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from support.azure import azure_container
from support.s3 import Bucket, line_to
from waybill.errors import Code, NotFound, TooLarge, UnsafePath
from waybill.failures import classify
from waybill.storage import LocalStorage, Storage

DATA = bytes(range(256)) * 4096
LARGE = DATA * 12  # in parts, where there are parts


@dataclass
class Place:
    storage: Storage
    objects: Callable[[], list[str]]
    """The keys of everything that is there, finished or not, seen from outside."""


def _local(tmp_path: Path) -> Place:
    root = tmp_path / "storage"
    return Place(
        LocalStorage(root), lambda: sorted(str(each.relative_to(root)) for each in root.rglob("*") if each.is_file())
    )


def _bucket(bucket: Bucket, storage: Storage) -> Place:
    return Place(
        storage,
        lambda: sorted(key.removeprefix("some/prefix/") for key in bucket.objects() + bucket.unfinished()),
    )


@pytest.fixture(
    params=[
        "local",
        "s3",
        pytest.param("google", marks=pytest.mark.heavy),
        pytest.param("azure", marks=pytest.mark.heavy),
    ]
)
async def place(request: pytest.FixtureRequest, tmp_path: Path, bucket: Bucket) -> AsyncIterator[Place]:
    if request.param == "local":
        yield _local(tmp_path)
    elif request.param == "s3":
        yield _bucket(bucket, bucket.storage())
    elif request.param == "azure":
        with azure_container() as container:
            yield Place(
                container.storage(), lambda: sorted(key.removeprefix("some/prefix/") for key in container.blobs)
            )
    else:
        async with line_to(bucket.server, google=True) as line:
            yield _bucket(bucket, bucket.google_storage(line.url))


@pytest.fixture
def storage(place: Place) -> Storage:
    return place.storage


async def pieces(data: bytes, size: int = 100_000) -> AsyncIterator[bytes]:
    for at in range(0, len(data), size):
        yield data[at : at + size]


async def read(storage: Storage, key: str, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([chunk async for chunk in storage.stream(key, start, end)])


@pytest.mark.parametrize("data", [b"", b"x", DATA, LARGE, LARGE + b"x"], ids=len)
async def test_an_object_comes_back_as_it_was(storage: Storage, data: bytes) -> None:
    for given in (data, pieces(data)):
        stored = await storage.put("a/b/whole", given)
        assert (stored.key, stored.bytes) == ("a/b/whole", len(data))
        assert stored.sha256 == hashlib.sha256(data).hexdigest()
        assert await storage.get("a/b/whole") == data
        assert await read(storage, "a/b/whole") == data
        assert await storage.exists("a/b/whole")
        assert await storage.size("a/b/whole") == len(data)


async def test_a_range_is_what_there_is_of_it(storage: Storage) -> None:
    await storage.put("k", pieces(LARGE))
    await storage.put("empty", b"")
    end = len(LARGE)
    for start, stop in ((0, 10), (5, 5), (100, 7), (3, end - 3), (end - 5, None), (end - 5, end + 9), (end, None)):
        assert await read(storage, "k", start, stop) == LARGE[start:stop], (start, stop)
    assert await read(storage, "k", end + 1, end + 2) == b""
    for start, stop in ((0, None), (0, 10), (3, None), (4, 2)):
        assert await read(storage, "empty", start, stop) == b""


async def test_what_is_not_there_is_not_found(storage: Storage) -> None:
    await storage.put("file", b"x")
    for key in ("missing", "missing/deeper", "file/below"):
        assert not await storage.exists(key)
        await storage.delete(key)
        for attempt in (storage.get(key), storage.size(key)):
            with pytest.raises(NotFound):
                await attempt
        for start, end in ((0, None), (5, None), (0, 0)):
            with pytest.raises(NotFound):
                await anext(storage.stream(key, start, end))


async def test_many_are_deleted_at_once_and_the_others_stay(place: Place) -> None:
    keys = [f"results/26/01/0{number % 2 + 1}/job-{number // 3}/{number}.xml" for number in range(40)]
    for key in keys:
        await place.storage.put(key, b"x")
    await place.storage.delete_many([*keys[:30], "results/26/01/01/never/was.xml"])
    assert place.objects() == sorted(keys[30:])
    await place.storage.delete_many(keys)
    await place.storage.delete_many([])
    assert place.objects() == []


async def test_deleted_is_gone_and_may_be_deleted_again(place: Place) -> None:
    await place.storage.put("a/b", b"x")
    await place.storage.delete("a/b")
    await place.storage.delete("a/b")
    assert not await place.storage.exists("a/b")
    assert place.objects() == []


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/passwd",
        "../up",
        "a/../b",
        "a//b",
        "a/",
        "./a",
        ".hidden",
        "a/.b",
        "a\0b",
        "a\nb",
        "a b",
        "ä",
        "a%2e",
        "a\\b",
        "con",
        "a" * 300,
        "a/" * 600 + "a",
    ],
)
async def test_only_what_looks_like_a_key_is_one(place: Place, key: str) -> None:
    storage = place.storage
    for attempt in (
        storage.get(key),
        storage.put(key, b"x"),
        storage.delete(key),
        storage.exists(key),
        storage.size(key),
        anext(storage.stream(key)),
    ):
        with pytest.raises(UnsafePath):
            await attempt
    if key.rstrip("/"):
        with pytest.raises(UnsafePath):
            await anext(storage.list(key + "/x"))


async def test_a_listing_names_what_lies_below_and_nothing_else(storage: Storage) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    sizes = {"a/b/c.xml": 3, "a/b/d": 0, "a/bc": 1, "ab": 2, "z/y/x/w": 4}
    for key, size in sizes.items():
        await storage.put(key, b"x" * size)

    async def listed(prefix: str) -> dict[str, int]:
        found = [each async for each in storage.list(prefix)]
        assert all(before < each.modified < datetime.now(UTC) + timedelta(seconds=2) for each in found)
        return {each.key: each.bytes for each in found}

    assert await listed("") == sizes
    assert await listed("a") == {"a/b/c.xml": 3, "a/b/d": 0, "a/bc": 1}
    assert await listed("a/b") == await listed("a/b/") == {"a/b/c.xml": 3, "a/b/d": 0}
    assert await listed("nothing/here") == {}


@pytest.mark.parametrize("place", ["local", "s3"], indirect=True)
async def test_a_long_listing_is_complete(storage: Storage) -> None:
    keys = {f"many/{number % 7}/{number}" for number in range(1100)}
    for batch in range(0, 1100, 100):
        await asyncio.gather(*(storage.put(key, b"") for key in sorted(keys)[batch : batch + 100]))
    assert {each.key async for each in storage.list("many")} == keys
    some = storage.list("many")
    await anext(some)
    await some.aclose()  # type: ignore[attr-defined]


@pytest.mark.parametrize("length", [len(DATA), len(LARGE)])
async def test_an_upload_that_breaks_off_stores_nothing(place: Place, length: int) -> None:
    await place.storage.put("k", b"old")

    async def broken() -> AsyncIterator[bytes]:
        async for piece in pieces(LARGE[:length]):
            yield piece
        raise ConnectionResetError

    with pytest.raises(ConnectionResetError):
        await place.storage.put("k", broken())
    assert await place.storage.get("k") == b"old"
    assert place.objects() == ["k"]


@pytest.mark.parametrize("length", [len(DATA), len(LARGE)])
async def test_a_cancelled_upload_stores_nothing(place: Place, length: int) -> None:
    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        async for piece in pieces(LARGE[:length]):
            yield piece
        waiting.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(place.storage.put("k", endless()))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert place.objects() == []


@pytest.mark.parametrize("limit", [0, 100, len(DATA), len(LARGE) - 1])
async def test_too_much_is_refused_while_it_is_read(place: Place, limit: int) -> None:
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 50_000
            yield b"x" * 50_000

    with pytest.raises(TooLarge, match="larger than") as refused:
        await place.storage.put("k", endless(), limit=limit)
    assert classify(refused.value).code is Code.TOO_LARGE
    assert taken <= limit + 50_000
    with pytest.raises(TooLarge):
        await place.storage.put("k", LARGE, limit=limit)
    assert place.objects() == []
    assert (await place.storage.put("k", pieces(LARGE), limit=len(LARGE))).bytes == len(LARGE)


async def test_many_writers_of_one_key_leave_one_of_their_objects(place: Place) -> None:
    contents = [bytes([number]) * 200_000 for number in range(16)]
    await asyncio.gather(*(place.storage.put("a/b/k", pieces(content)) for content in contents))
    assert await place.storage.get("a/b/k") in contents
    assert place.objects() == ["a/b/k"]


async def test_a_storage_that_works_says_so(storage: Storage) -> None:
    await storage.check()
    await storage.put("k", b"x")
    await storage.check()

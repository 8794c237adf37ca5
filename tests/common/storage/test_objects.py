"""An object store that is slow, busy, broken or gone: waited for where that helps, and said kindly where not."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from support.patience import eventually
from support.s3 import BROKEN, KEY_ID, SECRET, SLOW_DOWN, Bucket, Fault, Line, Request
from waybill.errors import Code, IoFailure, NotFound
from waybill.failures import classify
from waybill.storage import Space, Storage

DATA = bytes(range(256)) * 4096
LARGE = DATA * 12

Operation = Callable[[Storage], Awaitable[object]]


async def read(storage: Storage, key: str, start: int = 0) -> bytes:
    return b"".join([chunk async for chunk in storage.stream(key, start)])


async def listed(storage: Storage) -> list[str]:
    return [each.key async for each in storage.list()]


OPERATIONS: dict[str, Operation] = {
    "put": lambda storage: storage.put("k", DATA),
    "put in parts": lambda storage: storage.put("k", LARGE),
    "get": lambda storage: storage.get("k"),
    "stream": lambda storage: read(storage, "k"),
    "range": lambda storage: read(storage, "k", 5),
    "size": lambda storage: storage.size("k"),
    "exists": lambda storage: storage.exists("k"),
    "delete": lambda storage: storage.delete("k"),
    "list": listed,
    "check": lambda storage: storage.check(),
}


@pytest.fixture(params=list(OPERATIONS.values()), ids=list(OPERATIONS))
def operation(request: pytest.FixtureRequest) -> Operation:
    chosen: Operation = request.param
    return chosen


def kind(error: BaseException) -> tuple[Code, int, bool, str | None]:
    seen = classify(error)
    assert SECRET not in f"{seen.message}{seen.detail}"
    assert KEY_ID not in f"{seen.message}{seen.detail}"
    return seen.code, seen.status, seen.retryable, seen.dependency if seen.of_dependency else None


IO_ERROR = (Code.IO_ERROR, 507, True, "storage")


def first(count: int, fault: Fault) -> Callable[[Request], Fault | None]:
    return lambda request: fault if request.number <= count else None


@pytest.mark.parametrize("fault", [BROKEN, SLOW_DOWN, Fault(swallow=True)], ids=["500", "503", "cut"])
async def test_a_passing_fault_is_waited_out(bucket: Bucket, line: Line, operation: Operation, fault: Fault) -> None:
    await bucket.storage().put("k", DATA)
    line.fate = first(2, fault)
    await operation(bucket.storage(line.url))
    assert len(line.seen) >= 3


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (BROKEN, "could not be read or written"),
        (SLOW_DOWN, "busy"),
        (Fault(403, b"<Error><Code>AccessDenied</Code></Error>"), "refuses access to this service"),
        (
            Fault(403, f"<Error><Code>SignatureDoesNotMatch</Code><AWSAccessKeyId>{KEY_ID}</AWSAccessKeyId>".encode()),
            "refuses access to this service",
        ),
        (Fault(200, b"this is not S3"), ""),
    ],
    ids=["500", "503", "denied", "wrong secret", "nonsense"],
)
async def test_a_lasting_fault_is_said_kindly_and_left_to_the_job(
    bucket: Bucket, line: Line, fault: Fault, words: str
) -> None:
    line.fate = lambda request: fault
    storage = bucket.storage(line.url)
    names = ("put", "put in parts", "get", "size", "list") if words else ("put in parts", "list")
    failures = await asyncio.gather(*(OPERATIONS[name](storage) for name in names), return_exceptions=True)
    for failed in failures:
        assert isinstance(failed, IoFailure)
        assert kind(failed) == IO_ERROR
        assert words in failed.message
        assert failed.__cause__ is None
        assert failed.__suppress_context__
    assert bucket.objects() == []
    assert "Storage" in repr(storage)
    assert SECRET not in repr(storage)


async def test_a_store_that_is_gone_is_unreachable(bucket: Bucket, operation: Operation) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        storage = bucket.storage(f"http://127.0.0.1:{unused.getsockname()[1]}")
        with pytest.raises(IoFailure, match="cannot be reached") as failed:
            await operation(storage)
    assert kind(failed.value) == IO_ERROR
    assert classify(failed.value).away


async def test_a_store_that_says_nothing_is_not_waited_for_for_ever(
    bucket: Bucket, line: Line, operation: Operation
) -> None:
    await bucket.storage().put("k", DATA)
    line.fate = lambda request: Fault(wait=asyncio.Event())
    with pytest.raises(IoFailure, match="too long") as failed:
        await operation(bucket.storage(line.url, timeout=0.1))
    assert kind(failed.value) == IO_ERROR
    assert line.seen


async def test_a_slow_answer_is_waited_for(bucket: Bucket, line: Line, operation: Operation) -> None:
    await bucket.storage().put("k", DATA)
    go_on = asyncio.Event()
    line.fate = first(1, Fault(wait=go_on))
    running = asyncio.ensure_future(operation(bucket.storage(line.url)))
    await line.arrived.wait()
    assert not running.done()
    go_on.set()
    await running


@pytest.mark.parametrize("after", [0, 1, 3_000_000])
async def test_a_download_that_breaks_off_goes_on_where_it_was(bucket: Bucket, line: Line, after: int) -> None:
    await bucket.storage().put("k", LARGE)
    line.fate = first(2, Fault(cut_after=after))
    assert await read(bucket.storage(line.url), "k") == LARGE
    line.seen.clear()
    assert await read(bucket.storage(line.url), "k", 1000) == LARGE[1000:]
    line.seen.clear()
    assert await bucket.storage(line.url).get("k") == LARGE
    assert len(line.seen) == 3


async def test_a_download_that_keeps_breaking_off_is_a_failure_and_never_half_an_object(
    bucket: Bucket, line: Line
) -> None:
    await bucket.storage().put("k", LARGE)
    line.fate = lambda request: Fault(cut_after=1)
    for attempt in (read(bucket.storage(line.url), "k"), bucket.storage(line.url).get("k")):
        with pytest.raises(IoFailure) as failed:
            await attempt
        assert kind(failed.value) == IO_ERROR


async def test_an_object_replaced_while_it_is_read_is_not_mixed_with_its_successor(bucket: Bucket, line: Line) -> None:
    storage = bucket.storage()
    await storage.put("k", LARGE)

    def fate(request: Request) -> Fault | None:
        return Fault(cut_after=3_000_000) if request.number == 1 else None

    line.fate = fate
    reading = bucket.storage(line.url).stream("k")
    await anext(reading)
    await storage.put("k", bytes(len(LARGE)))
    with pytest.raises(IoFailure):
        async for chunk in reading:
            assert chunk != bytes(len(chunk))


def part(request: Request) -> int:
    """Which part of an upload a request carries, from 1; 0 if it is something else."""
    return int(request.path.partition("partNumber=")[2].partition("&")[0] or 0) if request.method == "PUT" else 0


async def test_a_part_that_cannot_be_stored_ends_the_upload_and_leaves_nothing(bucket: Bucket, line: Line) -> None:
    await bucket.storage().put("k", b"old")
    line.fate = lambda request: BROKEN if part(request) else None
    taken = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield DATA

    with pytest.raises(IoFailure) as failed:
        await bucket.storage(line.url).put("k", endless())
    assert kind(failed.value) == IO_ERROR
    assert taken < 20  # it stopped asking
    assert bucket.objects() == ["some/prefix/k"]
    assert bucket.unfinished() == []
    assert await bucket.storage().get("k") == b"old"


@pytest.mark.parametrize("number", [1, 2, 3])
async def test_whichever_part_fails_there_is_no_object(bucket: Bucket, line: Line, number: int) -> None:
    line.fate = lambda request: BROKEN if part(request) == number else None
    with pytest.raises(IoFailure):
        await bucket.storage(line.url).put("k", LARGE)
    assert bucket.objects() == []
    assert bucket.unfinished() == []


@pytest.mark.parametrize("method", ["POST uploads", "POST uploadId"])
async def test_an_upload_in_parts_that_cannot_begin_or_end_is_no_object(
    bucket: Bucket, line: Line, method: str
) -> None:
    verb, word = method.split()
    line.fate = lambda request: BROKEN if request.method == verb and word in request.path else None
    with pytest.raises(IoFailure) as failed:
        await bucket.storage(line.url).put("k", LARGE)
    assert kind(failed.value) == IO_ERROR
    assert bucket.objects() == []
    assert bucket.unfinished() == []


async def test_the_answer_to_the_last_step_may_be_lost(bucket: Bucket, line: Line) -> None:
    """The store has the object and we do not know. Whatever we say then, it is whole."""
    lost: list[Request] = []

    def fate(request: Request) -> Fault | None:
        if request.method == "POST" and "uploadId" in request.path and not lost:
            lost.append(request)
            return Fault(swallow=True)
        return None

    line.fate = fate
    (answer,) = await asyncio.gather(bucket.storage(line.url).put("k", LARGE), return_exceptions=True)
    assert not isinstance(answer, BaseException) or kind(answer) == IO_ERROR
    assert await bucket.storage().get("k") == LARGE
    assert lost


async def test_cancelled_while_the_store_puts_the_parts_together_it_removes_the_object(
    bucket: Bucket, line: Line
) -> None:
    go_on = asyncio.Event()
    line.fate = lambda request: Fault(wait=go_on) if "uploadId=" in request.path and request.method == "POST" else None
    uploading = asyncio.create_task(bucket.storage(line.url).put("k", LARGE))
    await line.arrived.wait()
    uploading.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    assert bucket.objects() == []
    assert bucket.unfinished() == []


async def test_cancelled_while_a_part_is_under_way_it_aborts(bucket: Bucket, line: Line) -> None:
    go_on = asyncio.Event()
    line.fate = lambda request: Fault(wait=go_on) if part(request) == 2 else None
    uploading = asyncio.create_task(bucket.storage(line.url).put("k", LARGE))
    await line.arrived.wait()
    uploading.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    assert bucket.objects() == []
    assert bucket.unfinished() == []


async def test_cancelled_while_the_store_is_stuck_it_leaves_and_the_abort_follows(
    bucket: Bucket, line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("waybill.storage.multipart_upload._PATIENCE", 0.05)
    go_on = asyncio.Event()
    line.fate = lambda request: Fault(wait=go_on) if "?uploads" in request.path else None
    uploading = asyncio.create_task(bucket.storage(line.url).put("k", LARGE))
    await line.arrived.wait()
    uploading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    go_on.set()

    async def aborted() -> bool:
        return [each.method for each in line.seen] == ["POST", "DELETE"] and bucket.unfinished() == []

    await eventually(aborted)
    assert bucket.objects() == []


async def test_cancelled_at_the_last_step_the_object_is_whole_or_not_there(bucket: Bucket, line: Line) -> None:
    line.fate = lambda request: Fault(wait=go_on) if request.method == "POST" and "uploadId" in request.path else None
    go_on = asyncio.Event()
    uploading = asyncio.create_task(bucket.storage(line.url).put("k", LARGE))
    await line.arrived.wait()
    uploading.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await uploading
    assert bucket.unfinished() == []
    if bucket.objects():
        assert await bucket.storage().get("k") == LARGE


async def test_a_reader_that_leaves_early_leaves_nothing_open(bucket: Bucket, line: Line) -> None:
    await bucket.storage().put("k", LARGE)
    reading = bucket.storage(line.url).stream("k")
    await anext(reading)
    await reading.aclose()  # type: ignore[attr-defined]

    line.fate = lambda request: Fault(wait=asyncio.Event())
    waiting = asyncio.create_task(read(bucket.storage(line.url), "k"))
    await line.arrived.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_bucket_that_does_not_exist_is_not_a_missing_object(bucket: Bucket) -> None:
    bucket.name = "no-such-bucket"
    storage = bucket.storage()
    for name in ("put", "put in parts", "get", "stream", "list", "check"):
        with pytest.raises(IoFailure, match=r"bucket .* does not exist") as failed:
            await OPERATIONS[name](storage)
        assert kind(failed.value) == IO_ERROR
    with pytest.raises(NotFound):  # a HEAD's answer has no body that could tell
        await storage.size("k")


async def test_a_bucket_is_used_below_its_prefix_or_whole(bucket: Bucket) -> None:
    await bucket.storage(prefix="/a").put("k/1", b"a")
    await bucket.storage(prefix="").put("k/2", b"b")
    assert sorted(bucket.objects()) == ["a/k/1", "k/2"]
    assert await listed(bucket.storage(prefix="/a")) == ["k/1"]
    assert sorted(await listed(bucket.storage(prefix=""))) == ["a/k/1", "k/2"]


async def test_a_store_that_counts_no_bytes_never_runs_out(bucket: Bucket) -> None:
    assert await bucket.storage().free_space() is None
    await Space(bucket.storage(), 2**60).check()

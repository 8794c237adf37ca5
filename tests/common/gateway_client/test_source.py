"""A storage that is slow, fails or gives less than it took is to blame itself: never the gateway's breaker."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.s3 import BROKEN, Bucket, Fault, Line, line_to, s3_server
from support.sick_gateway import Answer, answering, breaking_off, sick_gateway, stalling
from waybill.errors import Code
from waybill.failures import classify
from waybill.gateway_client.source import Source
from waybill.storage import LocalStorage, Storage
from waybill_convert.clients.gateway import Gateway

KEY = "uploads/26/11/16/document.pdf"
DOCUMENT = b"%PDF-1.7 " + bytes(range(256)) * 20_000
SHA256 = hashlib.sha256(DOCUMENT).hexdigest()
GOOD = answering(200, b'{"xml": "<a/>"}')


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with s3_server() as url:
        yield url


@pytest.fixture
async def line(s3: str) -> AsyncIterator[Line]:
    async with line_to(s3) as line:
        yield line


@pytest.fixture
async def remote(s3: str, line: Line) -> AsyncIterator[Storage]:
    """An object store with the document in it, over a line that can fail."""
    bucket = Bucket(s3)
    await bucket.storage().put(KEY, DOCUMENT)
    yield bucket.storage(line.url)
    bucket.close()


def stored(storage: Storage, slow: float = 5.0) -> Source:
    return Source(storage.stream(KEY), len(DOCUMENT), SHA256, slow=slow)


async def failure(source: Source, answer: Answer = GOOD, *, timeout: float = 60.0, hasty: bool = False) -> Any:
    async with sick_gateway(answer, hasty=hasty) as server:
        gateway = Gateway(server.url, timeout)
        try:
            with pytest.raises(Exception) as raised:
                await gateway.convert(source, mapping="some_v1", job_id="job-1", apart=lambda *_: asyncio.sleep(0))
        finally:
            await gateway.close()
    assert not server.requests or len(server.requests[0][1]) > len(DOCUMENT), "what is not whole is not sent as whole"
    return classify(raised.value)


def is_storages(found: Any) -> bool:
    return (found.code, found.retryable, found.of_dependency, found.dependency) == (
        Code.IO_ERROR,
        True,
        True,
        "storage",
    )


def is_the_documents(found: Any) -> bool:
    """It counts against nobody's breaker."""
    return found.code is Code.IO_ERROR and found.retryable and found.charged and not found.blames


async def late(seconds: float) -> AsyncIterator[bytes]:
    yield DOCUMENT[:1000]
    await asyncio.sleep(seconds)
    yield DOCUMENT[1000:]


async def test_a_storage_that_fails_in_the_middle(remote: Storage, line: Line) -> None:
    line.fate = lambda request: Fault(cut_after=100_000) if request.number == 1 else BROKEN
    assert is_storages(await failure(stored(remote)))
    assert len(line.seen) > 1, "it was asked again before we gave up"


async def test_a_storage_that_is_silent_until_time_is_up(remote: Storage, line: Line) -> None:
    line.fate = lambda _request: Fault(wait=asyncio.Event())
    assert is_storages(await failure(stored(remote, slow=0.1), timeout=0.5))


async def test_a_gateway_that_is_silent_is_still_to_blame(remote: Storage) -> None:
    found = await failure(stored(remote, slow=0.1), stalling, timeout=3.0)
    assert (found.code, found.of_dependency) == (Code.GW_TIMEOUT, True)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (DOCUMENT[:-1], "only a part"),
        (b"", "only a part"),
        (DOCUMENT + b"x", "longer"),
        (DOCUMENT[:-1] + b"x", "not the uploaded one"),
    ],
    ids=["short", "empty", "long", "other"],
)
async def test_what_is_stored_is_not_what_was_uploaded(tmp_path: Path, content: bytes, said: str) -> None:
    storage = LocalStorage(tmp_path)
    await storage.put(KEY, content)
    found = await failure(stored(storage))
    assert is_the_documents(found)
    assert said in found.message


async def test_a_gateway_that_tires_of_waiting_for_a_slow_storage_is_not_to_blame() -> None:
    source = Source(late(0.3), len(DOCUMENT), slow=0.1)
    assert is_storages(await failure(source, answering(408)))
    source = Source(late(0.3), len(DOCUMENT), slow=0.1)
    assert is_storages(await failure(source, breaking_off, hasty=True))


async def test_a_gateway_that_breaks_off_though_the_document_came_fast_is() -> None:
    for answer, hasty, code in (
        (answering(408), False, Code.GW_TIMEOUT),
        (breaking_off, True, Code.GW_5XX),
        (breaking_off, False, Code.GW_5XX),
    ):
        found = await failure(Source(late(0), len(DOCUMENT)), answer, hasty=hasty)
        assert (found.code, found.of_dependency) == (code, True)
    # However slow the storage was, an answer is an answer.
    found = await failure(Source(late(0.3), len(DOCUMENT), slow=0.1), answering(500))
    assert (found.code, found.of_dependency) == (Code.GW_5XX, True)

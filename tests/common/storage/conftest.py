"""An S3 server for the tests of the storage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from support.s3 import Bucket, Line, line_to, s3_server


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """The URL of an S3 server."""
    with s3_server() as url:
        yield url


@pytest.fixture
def bucket(s3: str) -> Iterator[Bucket]:
    """A bucket of one's own."""
    bucket = Bucket(s3)
    yield bucket
    bucket.close()


@pytest.fixture
async def line(s3: str) -> AsyncIterator[Line]:
    """A line to the S3 server that can fail."""
    async with line_to(s3) as line:
        yield line

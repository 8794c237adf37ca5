"""`POST /unpack` hands out what is in a ZIP, part by part, and a ZIP can do no harm."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest

from support.gateway import Gateway
from support.packs import SECRET, frames_of, unpack, zipped


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), gateway_secret=SECRET, gateway_max_result_mb="4")
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text


def test_what_is_in_a_zip_comes_out_member_by_member(proven: Gateway) -> None:
    inner = zipped(("deep.txt", b"deep"))
    archive = zipped(("a/", b""), ("a/b.txt", b"text"), ("c.json", b'{"a": 1}'), ("in.zip", inner), ("../d", b""))
    found, end = frames_of(unpack(proven, archive, job_id="job-1"))
    assert [(header["no"], header["path"], header.get("type"), content) for header, content in found] == [
        (0, "a/b.txt", "text", b"text"),
        (1, "c.json", "json", b'{"a": 1}'),
        (2, "in.zip/deep.txt", "text", b"deep"),
        (3, "../d", None, b""),
    ]
    assert found[0][0]["sha256"] == hashlib.sha256(b"text").hexdigest()
    assert found[3][0]["problem"]["fault"] == "unsafe_name"
    assert (end["files"], end["problem"]) == (4, None)
    assert not proven.spooled()

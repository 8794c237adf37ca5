"""`POST /extract` reads many documents in one request, and each has the answer that it would have alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from support.gateway import Gateway
from support.packs import SECRET, extract, frames_of


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    gateway = Gateway(tmp_path_factory.mktemp("gateway"), gateway_secret=SECRET, max_upload_mb="8")
    yield gateway
    gateway.close()
    assert "Traceback" not in gateway.log_text


def test_each_document_has_its_answer_in_order(proven: Gateway) -> None:
    found, end = frames_of(extract(proven, [("text", b"one"), ("png", b"x"), ("text", b""), ("text", b"two")]))
    assert [(header["no"], header["status"]) for header, _ in found] == [(0, 200), (1, 415), (2, 422), (3, 200)]
    assert json.loads(found[0][1])["pages"][0]["text"] == "one"
    assert end == {"end": True, "bytes": 0}

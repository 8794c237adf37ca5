"""The summary adds up, whatever the files are, and says what a page needs."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx
import pytest

from support.batch_desk import Desk, batch, made, notes
from waybill.errors import Code
from waybill_batches.error_types import ErrorType, error_type
from waybill_batches.status import BatchStatus
from waybill_batches.summary import status_of

pytestmark = pytest.mark.timeout(120)

Folder = dict[str, Any]


@pytest.mark.parametrize(
    ("counts", "status"),
    [
        ({"complete": 2}, "complete"),
        ({"needs_review": 1}, "complete"),
        ({"complete": 1, "failed": 1}, "complete_with_errors"),
        ({"needs_review": 1, "failed": 1}, "complete_with_errors"),
        ({"complete": 1, "cancelled": 1}, "complete_with_errors"),
        ({"failed": 2}, "failed"),
        ({"failed": 1, "cancelled": 1}, "failed"),
        ({"cancelled": 2}, "cancelled"),
        ({}, "failed"),
        ({"expired": 2}, "expired"),
        ({"expired": 1, "complete": 1}, "complete"),
        ({"expired": 1, "failed": 1}, "expired"),
    ],
)
def test_a_batch_ends_as_its_files_did(counts: dict[str, int], status: str) -> None:
    assert status_of(counts) is BatchStatus(status)


def test_every_code_has_a_type() -> None:
    assert {error_type(code) for code in Code} == set(ErrorType)
    assert error_type("FROM_THE_FUTURE") is ErrorType.UNKNOWN
    assert error_type(Code.TOO_LARGE) is ErrorType.PERMANENT


def every(folder: Folder) -> list[Folder]:
    return [folder, *(below for each in folder["folders"] for below in every(each))]


async def test_a_tree_of_thousands_of_folders_adds_up(desk: Desk, browser: httpx.AsyncClient) -> None:
    new = await made(browser, notes("a.txt"))
    await desk.work(["process_batch", "extract_file"])
    await desk.sql(
        "INSERT INTO batch_files (batch_id, number, owner, doc_id, path, type, bytes, sha256, status, error)"
        " SELECT batch_id, n, owner, n::text, n % 50 || '/' || n || '/' || repeat('x/', n % 40) || 'f', 'text', 10,"
        " 'ab',"
        " CASE WHEN n % 3 = 0 THEN 'failed' ELSE 'complete' END,"
        " CASE WHEN n % 3 = 0 THEN jsonb_build_object('code', 'PARSE_ERROR', 'key', 'k' || n % 2, 'message', 'm',"
        " 'params', jsonb_build_object('n', n)) END"
        " FROM batch_files, generate_series(1, 6000) AS n"
    )
    await desk.work()
    summary = (await batch(browser, new))["summary"]
    assert summary["counts"] == {"files": 6001, "complete": 4001, "failed": 2000}
    root = summary["folders"]
    size = await desk.value("SELECT sum(bytes)::int FROM batch_files WHERE batch_id = $1", uuid.UUID(new))
    assert (root["files"], root["complete"], root["failed"], root["bytes"]) == (6001, 4001, 2000, size)
    for folder in every(root):
        assert sum(below["files"] for below in folder["folders"]) <= folder["files"]
    assert len(every(root)) < 40_000
    assert [(each["key"], each["files"], len(each["examples"])) for each in summary["by_error"]] == [
        ("k0", 1000, 3),
        ("k1", 1000, 3),
    ]
    assert summary["by_error"][0]["error_type"] == "PARSE_ERROR"
    assert [each["type"] for each in summary["by_type"]] == ["text"]
    assert len(json.dumps(summary)) < 8 * 2**20

"""Batches in the states that a person can meet, put there as the workers would leave them."""

from __future__ import annotations

import io
import json
import uuid
import zipfile
from collections.abc import Sequence
from typing import Any

from playwright.async_api import FilePayload, Page

from support.stack import Stack
from waybill_batches.repository.figures import of_batch
from waybill_batches.summary import status_of, summary_of

LOCKED = {
    "code": "PARSE_ERROR",
    "message": "The file has a password. Please remove it.",
    "key": "batches.unreadable.encrypted_office",
    "params": {},
}
PICTURE = {
    "code": "PARSE_ERROR",
    "message": "This is a picture. Pictures are not read.",
    "key": "batches.unreadable.png",
    "params": {},
}

_INSERT = """
INSERT INTO batch_files (batch_id, number, owner, doc_id, path, type, bytes, sha256, mapping, status, job_id, error,
                         tries, milliseconds, reused, amounts, result_key, result_at, result_bytes, xml_key, xml_bytes,
                         source_key)
SELECT batch.id, file.number, batch.owner, md5(file.path), file.path, file.type, 900 + file.number % 7000 * 13,
       md5(file.path), file.mapping, file.status,
       CASE WHEN file.mapping IS NOT NULL THEN gen_random_uuid() END,
       CASE WHEN file.status = 'failed' THEN
            CASE WHEN file.type = 'png' THEN $3::text::jsonb ELSE $2::text::jsonb END END,
       CASE WHEN file.number % 97 = 0 THEN 2 ELSE 0 END, 0.4 + file.number % 41 * 3.7,
       file.number % 11 = 0 AND file.status = 'complete',
       CASE WHEN file.mapping IS NOT NULL AND file.status = 'complete' THEN
            '{"values": {"total": "1110000.00", "vat": "110000.00"}, "currency": "IDR"}'::jsonb END,
       CASE WHEN file.status = 'complete' THEN 'x' END, 0, CASE WHEN file.status = 'complete' THEN 200 END,
       CASE WHEN file.status = 'complete' AND file.mapping IS NOT NULL THEN 'x' END, 200, 'x'
  FROM batches AS batch, unnest($4::int[], $5::text[], $6::text[], $7::text[], $8::text[])
       AS file (number, path, type, status, mapping)
 WHERE batch.id = $1
"""

_END_JOBS = """
UPDATE jobs SET state = 'succeeded', finished_at = now(), run_at = now(), pending_children = 0
 WHERE id = $1 OR parent_id = $1
"""

TYPES = ("pdf", "docx", "xlsx", "text", "xml", "png")
FOLDERS = ("invoices/2025/july", "invoices/2025/august", "letters", "scans")


def zipped(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def payload(name: str, content: bytes) -> FilePayload:
    return {"name": name, "mimeType": "application/zip", "buffer": content}


async def send(page: Page, name: str, content: bytes | None = None, **fields: str) -> str:
    """Sends a ZIP as the browser of a page would, and says which batch it is."""
    content = content or zipped((f"{uuid.uuid4()}.txt", uuid.uuid4().bytes))
    answer = await page.request.post("/api/batches", multipart={"file": payload(name, content), **fields})
    assert answer.ok, await answer.text()
    return str((await answer.json())["batch"]["id"])


async def fill(stack: Stack, batch_id: str, files: Sequence[tuple[str, str, str, str | None]]) -> None:
    """Give a batch these files: path, type, status and mapping of each."""
    await stack.sql(
        _INSERT,
        uuid.UUID(batch_id),
        json.dumps(LOCKED),
        json.dumps(PICTURE),
        list(range(len(files))),
        *([each[column] for each in files] for column in range(4)),
    )
    await stack.sql(
        "UPDATE batches SET status = 'processing', unpacked_at = now(), changed = pg_current_xact_id() WHERE id = $1",
        uuid.UUID(batch_id),
    )


async def end(stack: Stack, batch_id: str, status: str | None = None) -> None:
    """End a batch with a summary of its files, as the worker does."""

    async def write(connection: Any) -> None:
        found = await of_batch(connection, uuid.UUID(batch_id))
        counts = {"files": sum(found.by_status.values()), **found.by_status}
        await connection.execute(
            "UPDATE batches SET status = $2, counts = $3::text::jsonb, summary = $4::text::jsonb, finished_at = now(),"
            " changed = pg_current_xact_id(), changed_at = now() WHERE id = $1",
            uuid.UUID(batch_id),
            status or status_of(found.by_status).value,
            json.dumps(counts),
            json.dumps(summary_of(found, 1)) if found.by_status else None,
        )
        await connection.execute(_END_JOBS, uuid.UUID(batch_id))
        await connection.execute("SELECT waybill_tell(owner) FROM batches WHERE id = $1", uuid.UUID(batch_id))

    await stack.run(write)


def many(number: int, *, done: float = 1.0) -> list[tuple[str, str, str, str | None]]:
    """Files of all sorts in a few folders. `done` is the share of them that have ended."""
    files: list[tuple[str, str, str, str | None]] = []
    for each in range(number):
        kind = TYPES[each % len(TYPES)] if each % 13 else "pdf"
        mapping = "pt_simon_invoice_v1" if kind == "pdf" and each % 3 else None
        failed = kind == "png" or each % 89 == 0
        status = "failed" if failed else "needs_review" if mapping and each % 29 == 0 else "complete"
        if each >= number * done:
            status = "queued"
        ending = {"text": "txt", "png": "png"}.get(kind, kind)
        files.append((f"{FOLDERS[each % len(FOLDERS)]}/document {each:05}.{ending}", kind, status, mapping))
    return files


async def all_batches(page: Page, stack: Stack) -> dict[str, str]:
    """Batches by what they are; the first stands at the bottom of the page."""
    names = {
        "expired": "Archive 2019.zip",
        "refused": "Scans.zip",
        "cancelled": "Drafts.zip",
        "failed": "Pictures of receipts.zip",
        "ready": "Letters of July.zip",
        "partly": "Accounting August 2025.zip",
        "going": "Everything of the year, all departments (final, corrected).zip",
        "waiting": "Contracts.zip",
    }
    ids = {what: await send(page, name) for what, name in names.items()}
    files: dict[str, list[tuple[str, str, str, str | None]]] = {
        "expired": [("a.txt", "text", "expired", None)],
        "cancelled": [("a.txt", "text", "complete", None), ("b.txt", "text", "cancelled", None)],
        "failed": [("a.png", "png", "failed", None), ("b.png", "png", "failed", None)],
        "ready": [(f"letter {each}.docx", "docx", "complete", None) for each in range(31)],
        "partly": many(120),
        "going": many(900, done=0.4),
    }
    for what, made in files.items():
        await fill(stack, ids[what], made)
    for what in ("failed", "ready", "partly"):
        await end(stack, ids[what])
    await end(stack, ids["expired"], "expired")
    await end(stack, ids["cancelled"], "cancelled")
    await stack.sql(
        "UPDATE batches SET status = 'failed', counts = '{}', finished_at = now(), error = $2::text::jsonb"
        " WHERE id = $1",
        uuid.UUID(ids["refused"]),
        json.dumps({"code": "PARSE_ERROR", "message": "There are no files in this ZIP.", "key": "batches.empty_zip"}),
    )
    return ids

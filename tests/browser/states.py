"""A queue with one job in every state a person can meet."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from playwright.async_api import Page

from browser.conftest import Upload
from support.stack import Stack
from waybill_documents.messages import DocumentMessage

LONG = (
    "A very long name that somebody typed with care, with the customer PT Maju Mundur Sejahtera Abadi Tbk and the"
    " month of August 2025 (final) (2) corrected.pdf"
)
FINDINGS: list[dict[str, Any]] = [
    {
        "code": "check_failed",
        "message": "Line 213: 12 × 45.000 is 540.000, but the line says 504.000.",
        "page": 7,
        "path": "lines[212].amount",
        "params": {
            "messages": {
                "en": "Line 213: 12 × 45.000 is 540.000, but the line says 504.000.",
                "id": "Baris 213: 12 × 45.000 adalah 540.000, di faktur tertulis 504.000.",
            }
        },
    },
    {
        "code": "check_failed",
        "message": "The lines add up to 12.345.678, but the subtotal says 12.309.678.",
        "page": 17,
        "params": {"messages": {"id": "Jumlah semua baris 12.345.678, tetapi subtotalnya tertulis 12.309.678."}},
    },
]


def failure(message: str, findings: list[dict[str, Any]] | None = None, **detail: Any) -> Mapping[str, Any]:
    now = datetime.now(UTC)
    kept = detail | ({"findings": findings} if findings else {})
    stored = json.dumps(kept) if kept else None
    return {"error_code": "GW_4XX", "error_message": message, "error_detail": stored, "finished_at": now}


def first_of(findings: list[dict[str, Any]]) -> Mapping[str, Any]:
    """What the gateway says about a document with several findings, as convert stores it."""
    first = DocumentMessage("check.other", **findings[0]["params"])
    says = DocumentMessage("document.first_finding", first=first, count=len(findings) - 1)
    return failure(says.english, findings, key=says.key, params=says.params)


async def all_states(page: Page, stack: Stack, upload: Upload) -> dict[str, str]:
    """Job ids by what they are; the first stands at the bottom of the page."""
    now = datetime.now(UTC)
    names = {
        "expired": "Faktur 2507300001.pdf",
        "cancelled": "Faktur 2508070002.pdf",
        "tired": "Faktur 2508070003.pdf",
        "failed": "Faktur 2508070004.pdf",
        "long": LONG,
        "doubtful": "Faktur 2508070005.pdf",
        "reused": "Faktur 2508070006.pdf",
        "ready": "Faktur 2508070007.pdf",
        "stopping": "Faktur 2508070008.pdf",
        "starting": "Faktur 2508070009.pdf",
        "running": "Faktur 2508070010.pdf",
        "retrying": "Faktur 2508070011.pdf",
        "waiting": "Faktur 2508070012.pdf",
    }
    ids = {what: await upload(page, name) for what, name in names.items()}
    owner = {"lease_owner": uuid.uuid4(), "started_at": now}
    doubts = {"below": 80, "count": 3, "values": ["number", "lines[1].name", "lines[2].name"]}
    await stack.sql(
        "UPDATE conversions SET doubts = $2::text::jsonb WHERE job_id = $1",
        uuid.UUID(ids["doubtful"]),
        json.dumps(doubts),
    )
    for what in ("expired", "long", "doubtful", "reused", "ready"):
        await stack.become(ids[what], "succeeded", started_at=now, finished_at=now)
    await stack.sql("UPDATE conversions SET status = 'expired' WHERE job_id = $1", uuid.UUID(ids["expired"]))
    await stack.sql("UPDATE conversions SET reused_at = now() WHERE job_id = $1", uuid.UUID(ids["reused"]))
    await stack.become(ids["cancelled"], "cancelled", finished_at=now)
    await stack.become(ids["tired"], "dead_letter", attempts=4, **failure("The converter took too long."))
    await stack.become(ids["failed"], "failed", **first_of(FINDINGS))
    await stack.become(ids["stopping"], "running", cancel_requested_at=now, **owner)
    await stack.become(ids["starting"], "running", **owner)
    await stack.become(ids["running"], "running", progress=0.45, progress_message="convert.progress.storing", **owner)
    await stack.become(
        ids["retrying"],
        "scheduled",
        attempts=1,
        run_at=now + timedelta(minutes=4),
        error_code="GW_5XX",
        error_message="The converter had a problem.",
    )
    return ids

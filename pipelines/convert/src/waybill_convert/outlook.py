"""What an owner is told beside the bare rows: how long it may take, and whether the converter is on hold.

Both are remembered for a while, for all owners together.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

from waybill.changes.subscriptions import BLIND, BREAKERS
from waybill_convert.estimates import SAMPLES, Estimates
from waybill_convert.kinds import DEPENDENCY
from waybill_convert.models import ConversionView, Fault, Hold
from waybill_convert.repository import conversions
from waybill_convert.status import Status
from waybill_engine.models import State

if TYPE_CHECKING:
    from waybill.changes.subscriptions import Changes
    from waybill.db import Database

_ESTIMATES_LAST = 30.0
_HOLD_LASTS = 10.0


class Outlook:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._estimates = Estimates(())
        self._estimates_until = 0.0
        self.hold: Hold | None = None
        self._hold_version = -1
        self._hold_until = 0.0
        self._refreshing = asyncio.Lock()

    def view(self, row: Any) -> ConversionView:
        return view(row, self._estimates, self.hold)

    async def refresh(self) -> None:
        """Look at the breaker and at recent durations, now and then."""
        now = time.monotonic()
        version = self._changes.version(BREAKERS)
        if now < self._estimates_until and now < self._hold_until and version == self._hold_version:
            return
        async with self._refreshing:
            now = time.monotonic()
            version = self._changes.version(BREAKERS)
            async with self._database.hot() as connection:
                if now >= self._hold_until or version != self._hold_version:
                    self.hold = _hold(await conversions.breaker(connection, DEPENDENCY))
                    self._hold_version = version
                    self._hold_until = now + (_HOLD_LASTS if self._changes.listening else BLIND)
                if now >= self._estimates_until:
                    self._estimates = Estimates(
                        await conversions.samples(connection, SAMPLES), await conversions.noted_durations(connection)
                    )
                    self._estimates_until = now + _ESTIMATES_LAST


def _hold(breaker: Any | None) -> Hold | None:
    if breaker is None:
        return None
    return Hold(
        "The converter is having an issue. Nothing is lost: waiting documents go on by themselves.",
        breaker["open_until"],
    )


def view(row: Any, estimates: Estimates, hold: Hold | None) -> ConversionView:
    """One row, as its owner sees it."""
    status, state = Status(row["status"]), State(row["state"])
    running = state is State.RUNNING
    remaining = None
    if running and row["running_for"] is not None:
        remaining = estimates.remaining(row["bytes"], max(0.0, row["running_for"]))
    return ConversionView(
        id=row["job_id"],
        status=status,
        dead_letter=state is State.DEAD_LETTER and status is not Status.COMPLETE,
        original_name=row["original_name"],
        bytes=row["bytes"],
        mapping=row["mapping"],
        created_at=row["created_at"],
        listed_at=row["listed_at"],
        updated_at=row["updated_at"],
        started_at=row["started_at"],
        finished_at=row["finished_at"],
        attempt=min(row["max_attempts"], row["attempts"] + (state in (State.RUNNING, State.SUCCEEDED))),
        max_attempts=row["max_attempts"],
        progress=row["progress"],
        progress_message=row["progress_message"] if running else None,
        retry_at=row["run_at"] if state is State.SCHEDULED else None,
        remaining_seconds=remaining,
        reused=row["reused_at"] is not None,
        stopping=running and row["cancel_requested_at"] is not None,
        on_hold=hold if status is Status.QUEUED else None,
        error=_fault(row, status),
        revision=row["revision"],
        source_kept=source_kept(row),
        pinned=row["pinned_at"] is not None,
    )


def source_kept(row: Any) -> bool:
    """Whether the document is still there, as far as its row knows."""
    return row["upload_deleted_at"] is None and row["upload_missing_at"] is None


def _fault(row: Any, status: Status) -> Fault | None:
    if row["error_code"] is None or status in (Status.COMPLETE, Status.EXPIRED):
        return None
    findings = json.loads(row["findings"]) if row["findings"] else []
    return Fault(row["error_code"], row["error_message"] or "", findings if isinstance(findings, list) else [])

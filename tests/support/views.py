"""Made-up conversions, in the form in which pages get them."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime

from waybill_convert.status import Status
from waybill_convert.views import ConversionView

NOW = datetime(2025, 8, 7, 12, 0, tzinfo=UTC)


def job(status: Status = Status.QUEUED, **changes: object) -> ConversionView:
    view = ConversionView(
        id=uuid.uuid4(),
        status=status,
        dead_letter=False,
        original_name="Faktur.pdf",
        bytes=48_213,
        mapping="pt_simon_invoice_v1",
        created_at=NOW,
        listed_at=NOW,
        updated_at=NOW,
        started_at=None,
        finished_at=None,
        attempt=1,
        max_attempts=4,
        progress=None,
        progress_message=None,
        retry_at=None,
        remaining_seconds=None,
        reused=False,
        stopping=False,
        on_hold=None,
        error=None,
        source_kept=True,
    )
    return replace(view, **changes)  # type: ignore[arg-type]

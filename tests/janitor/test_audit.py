"""The janitor links what nobody linked, and cuts off what is old."""

from __future__ import annotations

from support.clock import Clock
from support.janitor import Janitor, janitor
from waybill.audit import record
from waybill.audit.signatures import Signer
from waybill.audit.verification import verify
from waybill.db import Database
from waybill.db.database import Connection
from waybill.janitor.models import TaskOutcome
from waybill.storage import LocalStorage
from waybill_janitor.tasks.audit import AuditTrail

SECRET = "at least thirty-two characters long"
DAY = 86400.0


async def test_events_are_linked_kept_for_their_time_and_cut_off_behind_a_checkpoint(
    db: Database, storage: LocalStorage, hot: Connection, clock: Clock
) -> None:
    cleaner = janitor(db, storage, audit_ttl_days=30, audit_secret=SECRET)
    for number in range(3):
        await record(hot, "queue.paused", f"queue:{number}")
    signer = Signer(SECRET.encode())
    assert await cleaner.would() == {"audit": 3}
    await _audit(cleaner)
    verdict = await verify(hot, signer)
    assert (verdict.whole, verdict.events, verdict.unlinked) == (True, 3, 0)

    await clock.forward(31 * DAY)
    await record(hot, "queue.resumed", "queue:1")
    assert await _audit(cleaner) == {"linked": 1, "events": 3}
    await _audit(cleaner)
    verdict = await verify(hot, signer)
    assert (verdict.whole, verdict.first, verdict.events) == (True, 4, 2)
    assert await hot.fetchval("SELECT array_agg(action ORDER BY position) FROM audit_events") == [
        "queue.resumed",
        "audit.cut",
    ]


async def test_a_trail_that_somebody_changed_is_not_cut_and_the_run_says_so(
    db: Database, storage: LocalStorage, hot: Connection, clock: Clock
) -> None:
    cleaner = janitor(db, storage, audit_ttl_days=30)
    await record(hot, "queue.paused", "queue:a")
    await _audit(cleaner)
    await hot.execute("ALTER TABLE audit_events DISABLE TRIGGER ALL")
    await hot.execute("UPDATE audit_events SET actor = 'nobody'")
    await hot.execute("ALTER TABLE audit_events ENABLE TRIGGER ALL")
    await clock.forward(31 * DAY)
    report = (await cleaner.run([AuditTrail(cleaner.tools)]))["audit"]
    assert report.outcome is TaskOutcome.FAILED
    assert "waybill audit verify" in (report.error or "")
    assert await hot.fetchval("SELECT count(*) FROM audit_events") == 1


async def _audit(cleaner: Janitor) -> dict[str, int]:
    report = (await cleaner.run([AuditTrail(cleaner.tools)]))["audit"]
    assert report.outcome is TaskOutcome.DONE, report.error
    return dict(report.done)

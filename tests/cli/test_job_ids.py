"""Job ids as people type them: complete, or a beginning that only one job has."""

from __future__ import annotations

from support.command_line import Waybill
from support.engine import some_jobs
from waybill.db.database import Connection

NO_JOB = "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b"


async def test_an_id_may_be_abbreviated_while_it_is_unambiguous(waybill: Waybill, hot: Connection) -> None:
    job, twin = await some_jobs(hot, 2)
    same = 0
    while str(job)[same] == str(twin)[same]:
        same += 1
    assert (await waybill("jobs", "show", str(job)[: same + 1], "--json")).json["id"] == str(job)
    assert (await waybill("jobs", "show", job.hex.upper(), "--json")).json["id"] == str(job)
    ambiguous = await waybill("jobs", "show", str(job)[:8])
    assert (ambiguous.code, ambiguous.out) == (1, "")
    assert str(twin) in ambiguous.err


async def test_what_is_no_id_is_a_usage_error_and_an_unknown_id_a_refusal(waybill: Waybill, hot: Connection) -> None:
    for wrong in ("0", "abcdefg", "nonsense", "019a8b2c-3d4e-7f50-8a6b-1c2d3e4f5a6b0"):
        ran = await waybill("jobs", "show", wrong)
        assert (ran.code, ran.out) == (2, "")
    for missing in (NO_JOB, NO_JOB[:12]):
        ran = await waybill("jobs", "show", missing)
        assert (ran.code, ran.out) == (1, "")
        assert missing in ran.err

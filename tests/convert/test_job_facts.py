"""What the command line says of a job that chose its mapping."""

from __future__ import annotations

import json
from pathlib import Path

from convert.conftest import put
from waybill.console.upload_request import UploadFile
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.security import Principal
from waybill_convert.commands.submit.submissions import Submission
from waybill_convert.job_facts import job_facts
from waybill_convert.repository.results import note_choice
from waybill_convert.service import Conversions

RUNNER_UP = {"name": "oyo_v1", "title": "OYO payment receipt", "score": 9}
WHY = {"title": "Coolblue invoice", "score": 29, "by": "phrases", "runner_up": RUNNER_UP}


async def test_jobs_show_tells_what_was_asked_for_what_was_used_and_why(
    conversions: Conversions, me: Principal, hot: Connection
) -> None:
    job = (await put(conversions, me)).job.id
    assert await job_facts(hot, job) == {"mapping": "pt_simon_invoice_v1"}
    await note_choice(hot, job, "coolblue_v1", "0" * 64, json.dumps(WHY))
    assert await job_facts(hot, job) == {"mapping": "pt_simon_invoice_v1"}, "it did not ask for a choice"
    await hot.execute("UPDATE conversions SET mapping = 'auto'")
    await note_choice(hot, job, "coolblue_v1", "0" * 64, json.dumps(WHY))
    assert await job_facts(hot, job) == {
        "mapping": "coolblue_v1",
        "requested": "auto",
        "recognised": "Coolblue invoice, score 29 by phrases",
        "runner-up": "oyo_v1, score 9",
    }
    assert await job_facts(hot, new_id()) == {}


def test_submit_tells_it_too(tmp_path: Path) -> None:
    file = UploadFile(tmp_path / "a.pdf", 1)
    done = {"status": "complete", "mapping": "coolblue_v1", "recognition": WHY, "candidates": []}
    assert Submission(file, done).recognised == (
        "recognised as coolblue_v1 (Coolblue invoice), score 29; next oyo_v1, score 9"
    )
    failed = {"status": "failed", "mapping": "auto", "recognition": None, "candidates": [RUNNER_UP]}
    assert Submission(file, failed).recognised == "nearest mappings: oyo_v1 (9)"
    assert Submission(file, {"status": "complete", "mapping": "oyo_v1"}).recognised == ""

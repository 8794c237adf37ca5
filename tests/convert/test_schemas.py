"""The JSON of a job: its error, its pause and its progress are English sentences with their keys."""

from __future__ import annotations

from support.views import job
from waybill.messages import msg
from waybill_convert.schemas import JobSchema, job_json
from waybill_convert.status import Status
from waybill_convert.views import Fault, Pause


def test_an_error_and_a_pause_carry_keys_and_parameters() -> None:
    fault = Fault("GW_TIMEOUT", "No answer.", [], "gateway_call.no_answer", {"seconds": "180"})
    told = job_json(job(error=fault, on_hold=Pause(msg("convert.paused"), None)))
    assert told["error"] == {
        "code": "GW_TIMEOUT",
        "key": "gateway_call.no_answer",
        "params": {"seconds": "180"},
        "message": "No answer.",
        "findings": [],
    }
    assert (told["on_hold"]["key"], told["on_hold"]["reason"]) == ("convert.paused", str(msg("convert.paused")))
    JobSchema.model_validate(told)


def test_progress_is_put_into_words() -> None:
    for stored, told in (("convert.progress.converting", "Converting"), ("Page 3", "Page 3"), (None, None)):
        assert job_json(job(Status.PROCESSING, progress_message=stored))["progress_message"] == told

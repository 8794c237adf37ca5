"""Runs that end leave lines, but a worker that ends thousands of runs in a second does not spend it on logging."""

from __future__ import annotations

from structlog.testing import capture_logs

from support.store import job, lane
from waybill_engine.worker.run_lines import MOST_PER_SECOND, SuccessLines


def test_successes_are_logged_up_to_a_limit_and_the_rest_is_counted() -> None:
    lines, claimed = SuccessLines(), job(lane("acme"), 1)
    claimed.took = 0.75
    with capture_logs() as written:
        for _ in range(MOST_PER_SECOND + 7):
            lines.log(claimed, now=100.25)
        lines.log(claimed, now=101.25)
        lines.log(claimed, now=101.25)
    assert len(written) == MOST_PER_SECOND + 2
    first, later, last = written[0], *written[-2:]
    assert first == {
        "event": "job_succeeded", "log_level": "info", "kind": "work", "attempt": 1, "seconds": 0.75
    }  # fmt: skip
    assert (later["not_logged"], "not_logged" in last) == (7, False)

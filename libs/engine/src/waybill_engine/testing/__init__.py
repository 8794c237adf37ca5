"""For people who test handlers: run a job in the test's own process, see what was enqueued, let time pass.

    outcome = await run_inline(db, storage, NewJob(MAKE_REPORT, "acme", {"numbers": [1, 2, 3]}))
    assert outcome.state is State.SUCCEEDED

These are plain functions on a real database; they need no worker process and no pytest. `inline_runs` runs jobs,
`waiting_jobs` looks at those that wait and makes them due.
"""

from waybill_engine.testing.inline_runs import InlineOutcome, run_inline, run_waiting
from waybill_engine.testing.waiting_jobs import WaitingJob, advance, enqueued, make_due

__all__ = ["InlineOutcome", "WaitingJob", "advance", "enqueued", "make_due", "run_inline", "run_waiting"]

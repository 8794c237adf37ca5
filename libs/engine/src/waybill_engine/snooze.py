"""Snoozing: a handler that finds its job too early sends it back to wait, at no cost."""

from __future__ import annotations

from waybill_engine.finish import RunOutcome
from waybill_engine.models import State

_LEAST, _MOST = 1.0, 30 * 86400.0
"""Seconds. A shorter wait would keep workers busy with a job that cannot run; nobody means a longer one."""


class Snooze(Exception):
    """Raise it to have the job come back later: `raise Snooze(600, "the bank opens at nine")`.

    The job waits `seconds`, at least one, and is charged no attempt. The reason stands in its history. A job may snooze
    as often as it likes. For a wait that another server asked for, raise an error with `retry_after` instead.
    """

    def __init__(self, seconds: float, reason: str) -> None:
        if not 0 <= seconds <= _MOST:
            raise ValueError(f"a job can snooze for 0 seconds to 30 days, not for {seconds}")
        super().__init__(f"{reason} (for {seconds:g} s)")
        self.seconds = max(_LEAST, float(seconds))
        self.reason = str(reason)

    @property
    def outcome(self) -> RunOutcome:
        # Given back like a released job: it keeps its attempts and what is known of its last error.
        return RunOutcome(State.SCHEDULED, "snoozed", delay=self.seconds, message=self.reason, released=True)

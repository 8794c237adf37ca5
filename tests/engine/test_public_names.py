"""One import for people who write handlers, and a light one for processes that only enqueue."""

from __future__ import annotations

import subprocess
import sys

import waybill_engine


def test_everything_public_can_be_imported() -> None:
    assert {"JobKind", "handles", "JobContext", "NewJob", "enqueue", "kind_named"} <= set(waybill_engine.__all__)
    assert all(hasattr(waybill_engine, name) for name in waybill_engine.__all__)
    assert waybill_engine.__all__ == sorted(waybill_engine.__all__)
    assert not hasattr(waybill_engine, "no_such_name")


def test_enqueueing_loads_nothing_of_the_worker() -> None:
    """Neither storage nor cron nor the worker's loops: the API imports this package only to enqueue."""
    script = "import sys; from waybill_engine import NewJob, enqueue, handles; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()
    assert "waybill_engine.enqueue" in loaded
    heavy = ("anyio", "cronsim", "obstore", "uvloop", "waybill.storage", "waybill_engine.worker")
    assert not [name for name in loaded if name in heavy or name.startswith("waybill_engine.worker.")]

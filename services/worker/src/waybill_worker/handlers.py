"""The handlers of every installed pipeline and the engine's own.

Release 0.1.0 documented `WAYBILL_WORKER_HANDLERS=waybill_worker.handlers,yours`. This module keeps that working.
"""

import waybill_engine.selftest  # noqa: F401 - registers its handler
from waybill.pipelines import brought

brought("handlers")

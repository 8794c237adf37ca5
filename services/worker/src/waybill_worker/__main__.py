"""`python -m waybill_worker`: claims and runs the jobs of every installed pipeline.

The program is the engine's, `waybill_engine.worker.program`. This module only goes over the pipelines and tells it
what they bring.
"""

from __future__ import annotations

from waybill.config.registry import load_service
from waybill.pipelines import brought, installed
from waybill_engine.registry import register_kinds
from waybill_engine.settings import WorkerSettings
from waybill_engine.worker import program


def main() -> None:
    settings, _ = load_service(WorkerSettings)  # a wrong setting stops the worker here, not the first job that needs it
    for kinds in brought("kinds"):
        register_kinds(kinds)
    handlers = [pipeline.handlers for pipeline in installed() if pipeline.handlers is not None]
    program.main("waybill_worker", handlers, settings)


if __name__ == "__main__":
    main()

"""`python -m waybill_worker`: claims and runs the jobs of every installed pipeline.

The program is the engine's, `waybill_engine.worker.program`. This module only goes over the pipelines and tells it
what they bring.
"""

from __future__ import annotations

from waybill.config import load
from waybill.pipelines import installed, resolve
from waybill_engine.registry import register_kinds
from waybill_engine.worker import program


def main() -> None:
    handlers = []
    for pipeline in installed():
        for settings in pipeline.settings:
            load(resolve(settings))  # a wrong setting stops the worker here, not the first job that needs it
        if pipeline.kinds is not None:
            register_kinds(resolve(pipeline.kinds))
        if pipeline.handlers is not None:
            handlers.append(pipeline.handlers)
    program.main("waybill_worker", handlers)


if __name__ == "__main__":
    main()

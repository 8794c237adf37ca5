"""The worker goes over the installed pipelines: their handlers, kinds and settings."""

from __future__ import annotations

import subprocess
import sys

from support.patience import eventually
from support.workers import StartWorker, the_worker
from waybill.db.database import Connection
from waybill.pipelines import installed, resolve
from waybill_engine.caps import list_caps


async def test_it_serves_every_installed_pipeline_and_the_selftest(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers="")
    await the_worker(connection)
    kinds = {kind.name for pipeline in installed() if pipeline.kinds for kind in resolve(pipeline.kinds)}
    assert "convert_pdf" in kinds
    assert set(await connection.fetchval("SELECT kinds FROM workers")) == kinds | {"selftest"}


async def test_handlers_that_are_named_replace_those_of_the_pipelines(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers="waybill_engine.selftest", shared_imports=False)
    await the_worker(connection)
    assert await connection.fetchval("SELECT kinds FROM workers") == ["selftest"]


async def test_calls_to_the_gateway_are_capped_from_the_start(
    connection: Connection, start_worker: StartWorker
) -> None:
    start_worker(worker_handlers="", gateway_calls=3)

    async def capped() -> bool:
        return ("convert_pdf", 3) in [(cap.kind, cap.most) for cap in await list_caps(connection)]

    await eventually(capped)


async def test_a_pipelines_wrong_setting_stops_it_at_once(start_worker: StartWorker) -> None:
    worker = start_worker(worker_handlers="", gateway_calls="many")
    assert await worker.ended() == 2
    assert "WAYBILL_GATEWAY_CALLS: must be a whole number, got many" in worker.text


def test_the_handlers_module_that_0_1_0_documented_still_has_every_handler() -> None:
    code = """
from waybill_engine.registry import load_handlers
print(*sorted(load_handlers(["waybill_worker.handlers"])))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert {"convert_pdf", "selftest"} <= set(ran.stdout.split()), ran.stderr

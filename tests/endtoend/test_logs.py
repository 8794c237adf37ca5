"""Logs are calm: no document's content, no name, no key, and a traceback only for a bug of ours."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from endtoend.conftest import MakeStack
from support import bad_pdfs
from support.clumsy_handlers import CLUMSY
from support.customers import Customer
from support.invoices import Invoice, make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_subtotal
from support.patience import eventually
from support.sick_gateway import answering, sick_gateway
from support.stack import Stack
from waybill_engine import NewJob, enqueue

Come = Callable[[Stack], Customer]

pytestmark = pytest.mark.timeout(180)

SERVICES = ("api", "gateway", "worker")
NAME, MAPPING, KEY, TYPED, COOKIE, AMOUNT = (
    f"Zq{word}x" for word in ("Dokumen", "Pemetaan", "Kunci", "Ketikan", "Kue", "Jumlah")
)
MARKERS = (NAME, MAPPING, KEY, TYPED, COOKIE, AMOUNT)


def marked(seed: int) -> Invoice:
    """An invoice whose texts are words that stand nowhere else. Its numbers are found in what was read."""
    invoice = make_invoice(seed, 3)
    lines = tuple(replace(line, description=f"ZqBarang{line.no}x Wortel") for line in invoice.lines)
    return replace(invoice, buyer_name="PT ZqPembelix", buyer_address=("Jalan ZqAlamatx 5",), lines=lines)


def values_in(record: Any) -> Iterator[str]:
    """Every value that was read. Short ones, such as quantities, also stand in a log by chance."""
    if isinstance(record, dict):
        for value in record.values():
            yield from values_in(value)
    elif isinstance(record, list):
        for value in record:
            yield from values_in(value)
    elif len(str(record)) >= 7:
        yield str(record)


def written(stack: Stack) -> str:
    return "\n".join((stack.folder / f"{name}.log").read_text(errors="replace") for name in SERVICES)


async def test_no_log_has_anything_of_a_document_and_no_traceback(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack("api", "gateway", WAYBILL_LOG_LEVEL="debug", WAYBILL_BREAKER_OPEN="1")
    someone = customer(stack)
    http = someone.http
    right, wrong = marked(1), wrong_subtotal(marked(2))

    # The converter is busy, and then reads both.
    async with sick_gateway(answering(503, headers={"Retry-After": "1"})) as busy:
        stack.start("worker", WAYBILL_GATEWAY_URL=busy.url, WAYBILL_GATEWAY_SECRET="")
        jobs = [
            (await someone.upload(f"{NAME}.pdf", print_invoice(invoice, REFERENCE)))["id"] for invoice in (right, wrong)
        ]

        async def put_off() -> bool:
            return "job_waits" in stack.log("worker")

        await eventually(put_off, what="the busy gateway asked the worker to come back later")
        os.kill(stack.pid("worker"), signal.SIGTERM)  # it gives back what it has, so that the next one need not wait
        await asyncio.to_thread(stack.wait, "worker")
    broken = (await someone.upload(f"{NAME}.pdf", bad_pdfs.truncated()))["id"]
    stack.start("worker")
    ended = [(await someone.ended(job, within=120))["status"] for job in (*jobs, broken)]
    assert ended == ["complete", "failed", "failed"]

    # Corrections that fit, that do not, and that are outdated.
    good, bad = jobs
    for path, value in (("buyer_name", TYPED), ("subtotal", TYPED), (TYPED, TYPED)):
        for preview in (True, False):
            change = {"base": 0, "changes": [{"path": path, "value": value}], "preview": preview}
            assert (await http.post(f"/api/jobs/{bad}/revisions", json=change)).status_code in (200, 201, 409, 422)
        form = {"base": "0", f"v.{path}": value, "do": "check"}
        assert (await http.post(f"/review/{bad}", data=form)).status_code == 200
    for page in (f"/review/{good}", f"/review/{bad}", f"/api/jobs/{good}/download", f"/api/jobs/{good}/pages/1"):
        assert (await http.get(page)).status_code == 200
    record = (await http.get(f"/api/jobs/{good}/provenance")).json()
    found = (await http.get(f"/api/jobs/{bad}")).json()["error"]

    # Uploads, keys and addresses that are refused.
    for name, content, mapping in (
        (NAME, b"not a pdf", ""),
        (NAME, b"", ""),
        (NAME, print_invoice(right, REFERENCE), MAPPING),
    ):
        answer = await http.post("/api/upload", files={"file": (f"{name}.pdf", content)}, data={"mapping": mapping})
        assert 400 <= answer.status_code < 500
    await http.post(
        "/api/upload", content=NAME.encode(), headers={"Content-Type": f"multipart/form-data; boundary={NAME}"}
    )
    for headers in ({"Authorization": f"Bearer {KEY}"}, {"Cookie": f"waybill_session={COOKIE}"}):
        assert (await http.get(f"/api/jobs/{NAME}", headers=headers)).status_code >= 400
    for path in (f"/review/{NAME}", f"/api/jobs?cursor={NAME}", f"/{NAME}"):
        assert (await http.get(path)).status_code >= 400

    # No space.
    stack.stop("api")
    stack.start("api", WAYBILL_STORAGE_MIN_FREE_MB="100000000")
    await stack.ready("api")
    answer = await http.post("/api/upload", files={"file": (f"{NAME}.pdf", print_invoice(marked(3), REFERENCE))})
    assert answer.status_code == 507

    log = written(stack)
    values = {*values_in(record["data"]), *values_in([each["message"] for each in found["findings"]])}
    assert len(values) > 10
    shown = sorted(word for word in {*MARKERS, *values} if word in log)
    assert not shown
    assert "Zq" not in log
    assert "Traceback" not in log
    assert "exc_type" not in log
    assert "job_waits" in log, "the lines are there"
    assert "job_failed" in log


async def test_a_jobs_lines_are_found_by_its_id_in_every_service(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack(*SERVICES, WAYBILL_LOG_FORMAT="json")
    someone = customer(stack)
    job = (await someone.upload("invoice.pdf", print_invoice(make_invoice(7, 3), REFERENCE)))["id"]
    assert (await someone.ended(job, within=120))["status"] == "complete"
    visited = {"/review/{job_id}", "/api/jobs/{job_id}/download", "/api/jobs/{job_id}/pages/{number}"}
    for route in visited:
        assert (await someone.http.get(route.format(job_id=job, number=1) + "?secret=Zq")).status_code == 200

    def found(service: str) -> dict[str, list[dict[str, Any]]]:
        lines: dict[str, list[dict[str, Any]]] = {}
        for text in (stack.folder / f"{service}.log").read_text().splitlines():
            line = json.loads(text)
            assert {"timestamp", "level", "service", "event"} <= line.keys()
            if line.get("job_id") == job:
                lines.setdefault(line["event"], []).append(line)
        return lines

    async def complete() -> bool:
        seen = {line["route"] for line in found("api").get("request", [])}
        return visited <= seen and len(found("gateway").get("request", [])) == 2

    await eventually(complete, what="the lines about requests, which are written after the answers")
    api, gateway, worker = (found(name) for name in SERVICES)
    (uploaded,) = api["uploaded"]
    assert uploaded["tenant"] == "public"
    assert all(line["status"] == 200 and line["seconds"] > 0 and line["tenant"] == "public" for line in api["request"])
    assert len(gateway["processed"]) == 2, "the conversion and the picture of a page"
    (succeeded,) = worker["job_succeeded"]
    assert succeeded["tenant"] == "public"
    assert succeeded["worker"]
    assert succeeded["seconds"] > 0
    assert "Zq" not in written(stack)


async def test_a_handler_with_a_bug_gives_exactly_one_traceback(make_stack: MakeStack, tmp_path: Path) -> None:
    stack = await make_stack()
    tests = str(Path(__file__).parents[1])
    stack.start("worker", WAYBILL_WORKER_HANDLERS="support.clumsy_handlers", PYTHONPATH=tests)
    await stack.run(lambda connection: enqueue(connection, NewJob(CLUMSY, "acme", {"amount": AMOUNT})))

    async def failed() -> bool:
        return bool(await stack.sql("SELECT FROM jobs WHERE state = 'dead_letter'"))

    await eventually(failed, what="the job has failed")
    log = (tmp_path / "worker.log").read_text()
    assert log.count("Traceback") == 1
    assert "in clumsy" in log
    assert "ValueError" in log
    assert AMOUNT not in log
    (row,) = await stack.sql("SELECT error_detail FROM jobs")
    assert AMOUNT in json.loads(row["error_detail"])["text"], "its owner can read it in the job"

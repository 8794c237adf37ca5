"""What a day's work leaves in the metrics of all three services, through real processes and real scrapes."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from endtoend.conftest import MakeStack
from support.child_processes import free_port
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_amount
from support.patience import eventually
from support.scrapes import OPENMETRICS, scrape
from support.sick_gateway import sick_gateway, stalling
from support.stack import Stack

Come = Callable[[Stack], Customer]
QUICK = {"WAYBILL_LEASE_TTL": "2", "WAYBILL_HEARTBEAT_INTERVAL": "0.5", "WAYBILL_RESCUE_INTERVAL": "0.2"}
KIND = "convert_pdf"

pytestmark = pytest.mark.timeout(180)


async def test_metrics_tell_of_uploads_conversions_a_failure_a_crash_and_a_rescue(
    make_stack: MakeStack, customer: Come
) -> None:
    api, gateway, worker = free_port(), free_port(), free_port()
    ports = {
        "WAYBILL_API_METRICS_PORT": str(api),
        "WAYBILL_GATEWAY_METRICS_PORT": str(gateway),
        "WAYBILL_WORKER_METRICS_PORT": str(worker),
        "WAYBILL_SAMPLE_INTERVAL": "1",
    }
    document = print_invoice(make_invoice(6, 3), REFERENCE)
    async with sick_gateway(stalling) as sick:
        stack = await make_stack("api", "gateway", **ports)
        someone = customer(stack)
        good = await someone.upload("faktur.pdf", document)
        stack.start("worker", WAYBILL_GATEWAY_URL=sick.url, WAYBILL_GATEWAY_SECRET="", **QUICK)

        async def converting() -> bool:
            return len(sick.requests) == 1

        await eventually(converting, within=60, every=0.05, what="the worker called its gateway")
        stack.stop("worker")
    stack.start("worker", **QUICK)
    assert (await someone.ended(good["id"]))["status"] == "complete"
    bad = await someone.upload("wrong.pdf", print_invoice(wrong_amount(make_invoice(5, 10), 4), REFERENCE))
    assert (await someone.ended(bad["id"]))["status"] == "failed"
    await someone.upload("again.pdf", document)
    refused = await someone.http.post("/api/upload", files={"file": ("a.pdf", b"no PDF", "application/pdf")})
    assert refused.status_code == 415
    for number in range(5):
        await someone.http.get(f"/nowhere/{number}")
        await someone.http.request(f"STRANGE{number}", "/api/jobs")
    await someone.http.head("/livez")
    stack.start("janitor")
    stack.wait("janitor")

    async def sampled() -> bool:
        seen = await scrape(api)
        done = seen.find("waybill_janitor_last_success_timestamp_seconds")
        waiting = seen.find("waybill_queue_jobs", kind=KIND, state="running")
        return bool(done and waiting and waiting[0].value == 0 and seen.find("waybill_workers", state="active"))

    await eventually(sampled, within=60, every=0.2, what="the API shows a sample of after the work")

    async def all_counted() -> bool:
        return (await scrape(worker)).value("waybill_jobs_finished_total", kind=KIND) == 2

    await eventually(all_counted, every=0.1)

    seen = await scrape(worker, OPENMETRICS)
    assert seen.value("waybill_jobs_rescued_total", kind=KIND, verdict="crashed") == 1
    assert seen.value("waybill_jobs_claimed_total", kind=KIND) == 2, "the first worker's claim died with it"
    assert seen.value("waybill_jobs_finished_total", kind=KIND, outcome="succeeded") == 1
    assert seen.value("waybill_jobs_finished_total", kind=KIND, outcome="failed") == 1
    assert seen.value("waybill_jobs_finished_total", kind=KIND, outcome="dead_letter") == 0
    assert seen.value("waybill_attempts_failed_total", kind=KIND, code="GW_4XX") == 1
    for name in ("queued", "running", "end_to_end"):
        assert seen.value(f"waybill_job_{name}_seconds_count", kind=KIND) == 2
    assert seen.value("waybill_job_end_to_end_seconds_sum", kind=KIND) > seen.value(
        "waybill_job_queued_seconds_sum", kind=KIND
    ), "from the upload on, with the lost run and the wait for the lease"
    assert seen.value("waybill_gateway_call_seconds_count", outcome="ok") == 1
    assert seen.value("waybill_gateway_call_seconds_count", outcome="GW_4XX") == 1
    assert seen.value("waybill_storage_bytes_total", direction="read") > len(document)
    assert seen.value("waybill_event_loop_lag_seconds_count") > 0
    assert seen.value("waybill_heartbeat_late_seconds_count") > 0
    assert seen.value("waybill_leases_lost_total") == 0
    assert seen.value("waybill_database_pool_wait_seconds_count") > 0
    assert seen.value("waybill_database_pool_connections", pool="hot") == 3

    seen = await scrape(gateway)
    assert seen.value("waybill_gateway_request_seconds_count", route="/process", outcome="done") == 1
    assert seen.value("waybill_gateway_request_seconds_count", route="/process", outcome="rejected") == 1
    assert seen.value("waybill_gateway_stage_seconds_count", stage="xml") == 1
    assert seen.value("waybill_gateway_parsers") == 1
    assert seen.value("waybill_gateway_waiting") == 0
    assert seen.value("waybill_gateway_parser_deaths_total", cause="crashed") == 0
    assert seen.value("waybill_http_requests_total", service="gateway", route="/process", status="200") == 1

    seen = await scrape(api)
    assert seen.value("waybill_jobs_enqueued_total", kind=KIND) == 2
    assert seen.value("waybill_uploads_total", outcome="created") == 2
    assert seen.value("waybill_uploads_total", outcome="reused") == 1
    assert seen.value("waybill_uploads_total", outcome="refused") == 1
    assert seen.value("waybill_upload_bytes_total") >= 2 * len(document)
    assert seen.value("waybill_queue_jobs", kind=KIND) == 0
    assert seen.value("waybill_queue_oldest_seconds", kind=KIND) == 0
    assert seen.value("waybill_workers", state="active") == 1
    assert seen.value("waybill_sample_age_seconds") < 60
    assert seen.value("waybill_breaker_state", dependency="gateway", state="closed") == 1
    assert seen.value("waybill_breaker_state", dependency="gateway") == 1
    assert 0 < seen.value("waybill_storage_free_bytes") < seen.value("waybill_storage_size_bytes")
    assert seen.value("waybill_janitor_run_seconds") >= 0
    assert seen.value("waybill_janitor_last_run_timestamp_seconds") > 1.7e9
    assert seen.value("waybill_http_requests_total", method="POST", route="/api/upload", status="201") == 2
    assert seen.value("waybill_http_requests_total", method="GET", route="unmatched", status="404") == 5
    assert seen.value("waybill_http_requests_total", method="other") == 5
    assert seen.value("waybill_http_requests_total", method="HEAD", route="/livez", status="200") == 1
    assert seen.value("waybill_http_request_seconds_count", route="/api/upload") == 4
    assert seen.value("waybill_rate_limited_total") == 0
    assert seen.value("waybill_build_info", service="api") == 1

    for port in (api, gateway, worker):
        seen = await scrape(port)
        told = " ".join(seen.label_values())
        assert good["id"] not in told
        assert bad["id"] not in told
        assert "public" not in seen.label_values()
        assert "nowhere" not in told
        assert "STRANGE" not in told
        assert not any("tenant" in one.labels for one in seen.samples)
    async with httpx.AsyncClient(trust_env=False) as client:
        assert (await client.get(f"{stack.url}/metrics")).status_code == 404, "never on the public port"

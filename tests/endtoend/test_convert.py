"""Documents go through real processes: API, gateway, worker and Postgres. Some of these are down, slow or killed."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from lxml import etree

from endtoend.conftest import MakeStack
from support import bad_pdfs
from support.customers import Customer
from support.invoices import make_invoice, plan, print_invoice, reference_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_amount
from support.patience import eventually
from support.s3 import KEY_ID, SECRET, Bucket, line_to, s3_server
from support.sick_gateway import answering, sick_gateway, stalling
from support.small_disk import small_disk
from support.stack import Stack

ALL = ("api", "gateway", "worker")
Come = Callable[[Stack], Customer]
QUICK_BREAKER = {"WAYBILL_BREAKER_OPEN": "1", "WAYBILL_BREAKER_OPEN_MAX": "2"}

pytestmark = pytest.mark.timeout(180)


def pdf(seed: int, lines: int = 3) -> bytes:
    return print_invoice(make_invoice(seed, lines), REFERENCE)


def _strange(url: str) -> dict[str, str]:
    """Settings for a gateway that is not ours and knows no secret."""
    return {"WAYBILL_GATEWAY_URL": url, "WAYBILL_GATEWAY_SECRET": ""}


async def attempts(stack: Stack, job_id: str) -> int:
    (row,) = await stack.sql("SELECT attempts FROM jobs WHERE id = $1::text::uuid", job_id)
    return int(row["attempts"])


async def test_an_invoice_becomes_xml(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack(*ALL)
    someone = customer(stack)
    invoice, layout = reference_invoice(60)
    job = await someone.upload("faktur.pdf", print_invoice(invoice, layout))

    ended = await someone.ended(job["id"])

    assert ended["status"] == "complete", ended
    goods = etree.fromstring(await someone.download(job["id"])).findall(".//GoodService")
    assert [each.findtext("Name") for each in goods] == [line.description for line in invoice.lines]
    provenance = (await someone.http.get(f"/api/jobs/{job['id']}/provenance")).json()
    assert provenance["data"]["number"] == invoice.number
    (row,) = await stack.sql("SELECT pages FROM conversions")
    assert row["pages"] == len(plan(invoice, layout))


async def test_a_wrong_invoice_fails_once_with_its_findings(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack(*ALL)
    someone = customer(stack)
    job = await someone.upload("faktur.pdf", print_invoice(wrong_amount(make_invoice(5, 10), 4), REFERENCE))

    ended = await someone.ended(job["id"])

    assert ended["status"] == "failed"
    assert ended["attempt"] == 1
    assert ended["error"]["code"] == "GW_4XX"
    assert ended["error"]["findings"][0]["message"].startswith("line 4: ")
    (row,) = await stack.sql("SELECT count(*) AS kept FROM job_artefacts WHERE name = 'provenance.json'")
    assert row["kept"] == 1, "the record is kept for the person who reviews it"


async def test_a_document_chooses_its_mapping_or_a_person_does(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack(*ALL)
    someone = customer(stack)
    invoice = await someone.upload("faktur.pdf", pdf(8), mapping="auto")
    letter = await someone.upload("letter.pdf", bad_pdfs.good(), mapping="auto")

    ended = await someone.ended(invoice["id"])
    assert (ended["status"], ended["mapping"], ended["requested_mapping"]) == (
        "complete",
        "pt_simon_invoice_v1",
        "auto",
    )
    assert ended["recognition"] == {
        "title": "PT Simon invoice to Coretax e-Faktur",
        "score": 18,
        "by": "phrases",
        "runner_up": None,
    }
    review = (await someone.http.get(f"/review/{invoice['id']}")).text
    assert "Recognised as “PT Simon invoice to Coretax e-Faktur” by its words (score 18)." in review
    changes = [{"path": "buyer_name", "value": "PT Lain"}]
    saved = await someone.http.post(f"/api/jobs/{invoice['id']}/revisions", json={"base": 0, "changes": changes})
    assert saved.status_code == 201, saved.text

    failed = await someone.ended(letter["id"])
    assert (failed["status"], failed["error"]["key"]) == ("failed", "recognition.nothing")
    assert "coolblue_v1" in [each["name"] for each in failed["candidates"]]
    await someone.http.post(f"/api/jobs/{letter['id']}/retry", params={"mapping": "coolblue_v1"})
    named = await someone.ended(letter["id"])
    assert (named["mapping"], named["error"]["key"], named["candidates"]) == (
        "coolblue_v1",
        "document.lacks_phrases",
        [],
    )


async def test_after_a_worker_was_killed_in_the_middle_another_finishes(make_stack: MakeStack, customer: Come) -> None:
    async with sick_gateway(stalling) as sick:
        stack = await make_stack("api", "gateway")
        someone = customer(stack)
        job = await someone.upload("faktur.pdf", pdf(6))
        stack.start("worker", **_strange(sick.url), WAYBILL_LEASE_TTL="2", WAYBILL_HEARTBEAT_INTERVAL="0.5")

        async def converting() -> bool:
            return len(sick.requests) == 1

        await eventually(converting, within=30, every=0.05, what="the worker called its gateway")
        stack.stop("worker")
    stack.start("worker", WAYBILL_LEASE_TTL="2", WAYBILL_HEARTBEAT_INTERVAL="0.5", WAYBILL_RESCUE_INTERVAL="0.2")

    ended = await someone.ended(job["id"])

    assert ended["status"] == "complete"
    (row,) = await stack.sql("SELECT crashes FROM jobs")
    assert row["crashes"] == 1
    (row,) = await stack.sql("SELECT count(*) AS results FROM job_artefacts WHERE name = 'xml'")
    assert row["results"] == 1


async def test_while_the_gateway_is_down_jobs_wait_and_go_on_by_themselves(
    make_stack: MakeStack, customer: Come
) -> None:
    stack = await make_stack("api", "worker", **QUICK_BREAKER)
    someone = customer(stack)
    jobs = [await someone.upload(f"faktur-{number}.pdf", pdf(20 + number)) for number in range(6)]

    async def on_hold() -> bool:
        return (await someone.http.get("/api/jobs")).json()["on_hold"] is not None

    await eventually(on_hold, within=60, every=0.2, what="the list says that the converter has a problem")
    stack.start("gateway")
    ended = [await someone.ended(job["id"], within=90) for job in jobs]

    assert {each["status"] for each in ended} == {"complete"}
    assert await paid(stack) == 0
    assert (await someone.http.get("/api/jobs")).json()["on_hold"] is None


async def test_a_full_disk_costs_no_document_and_they_go_on_when_there_is_room(
    make_stack: MakeStack, customer: Come, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "home" / "storage") as disk:
        stack = await make_stack("api", "gateway", WAYBILL_STORAGE_MIN_FREE_MB="0", **QUICK_BREAKER)
        someone = customer(stack)
        jobs = [await someone.upload(f"faktur-{number}.pdf", pdf(30 + number)) for number in range(5)]
        disk.fill()
        stack.start("worker")
        await storage_breaker_opened_for_longer(stack)
        assert await paid(stack) == 0
        disk.empty()
        ended = [await someone.ended(job["id"], within=90) for job in jobs]
        stack.close()
    assert {each["status"] for each in ended} == {"complete"}
    assert await paid(stack) == 0
    assert await stack.sql("SELECT FROM breaker_events WHERE name = 'gateway' AND event = 'opened'") == [], (
        "it was not its fault"
    )


@pytest.mark.heavy
async def test_an_object_store_that_is_switched_off_costs_no_document(make_stack: MakeStack, customer: Come) -> None:
    with s3_server() as server:
        async with line_to(server) as line:
            bucket = Bucket(server)
            place = f"s3://{bucket.name}/waybill?endpoint={line.url}&region=us-east-1"
            secrets = {"WAYBILL_STORAGE_KEY_ID": KEY_ID, "WAYBILL_STORAGE_SECRET": SECRET}
            stack = await make_stack("api", "gateway", WAYBILL_STORAGE_URL=place, **secrets, **QUICK_BREAKER)
            someone = customer(stack)
            jobs = [await someone.upload(f"faktur-{number}.pdf", pdf(40 + number)) for number in range(5)]
            await line.switch_off()
            stack.start("worker")
            await storage_breaker_opened_for_longer(stack)
            assert await paid(stack) == 0
            await line.switch_on()
            ended = [await someone.ended(job["id"], within=120) for job in jobs]
            stack.close()
            bucket.close()
    assert {each["status"] for each in ended} == {"complete"}
    assert await paid(stack) == 0
    assert await stack.sql("SELECT FROM breaker_events WHERE name = 'gateway' AND event = 'opened'") == []


async def storage_breaker_opened_for_longer(stack: Stack) -> None:
    """It opened, and probes have found out that it was right."""

    async def reopened() -> bool:
        return bool(await stack.sql("SELECT FROM breaker_events WHERE name = 'storage' AND event = 'reopened'"))

    await eventually(reopened, within=120, every=0.1, what="a probe of the storage has failed")


async def paid(stack: Stack) -> int:
    (row,) = await stack.sql("SELECT sum(attempts) AS attempts FROM jobs")
    return int(row["attempts"])


@pytest.mark.heavy
async def test_a_busy_gateway_is_waited_for_at_no_charge(make_stack: MakeStack, customer: Come) -> None:
    async with sick_gateway(answering(503, headers={"Retry-After": "1"})) as busy:
        stack = await make_stack("api", "gateway")
        someone = customer(stack)
        job = await someone.upload("faktur.pdf", pdf(7))
        stack.start("worker", **_strange(busy.url))

        async def asked_thrice() -> bool:
            return len(busy.requests) >= 3

        await eventually(asked_thrice, within=30, every=0.1, what="the worker has called the gateway three times")
        assert await attempts(stack, job["id"]) == 0
        stack.stop("worker")
    stack.start("worker")
    assert (await someone.ended(job["id"]))["status"] == "complete"


async def test_a_slow_gateway_is_a_time_out_and_tried_again(make_stack: MakeStack, customer: Come) -> None:
    async with sick_gateway(stalling) as slow:
        stack = await make_stack("api")
        someone = customer(stack)
        job = await someone.upload("faktur.pdf", pdf(8))
        stack.start("worker", **_strange(slow.url), WAYBILL_GATEWAY_TIMEOUT="0.5")

        async def failed_once() -> bool:
            found = await someone.job(job["id"])
            return found["error"] is not None

        await eventually(failed_once, within=30, every=0.1, what="the first attempt has failed")
    found = await someone.job(job["id"])
    assert found["error"]["code"] == "GW_TIMEOUT"
    assert found["status"] == "queued"
    assert found["retry_at"] is not None


async def test_cancelling_stops_a_conversion(make_stack: MakeStack, customer: Come) -> None:
    async with sick_gateway(stalling) as slow:
        stack = await make_stack("api")
        someone = customer(stack)
        job = await someone.upload("faktur.pdf", pdf(9))
        stack.start("worker", **_strange(slow.url), WAYBILL_HEARTBEAT_INTERVAL="0.5")

        async def converting() -> bool:
            return len(slow.requests) == 1

        await eventually(converting, within=30, every=0.05, what="the worker called its gateway")
        answer = await someone.http.post(f"/api/jobs/{job['id']}/cancel")
        assert answer.status_code in (200, 202), answer.text
        assert (await someone.ended(job["id"]))["status"] == "cancelled"


@pytest.mark.heavy
async def test_a_document_that_is_gone_is_not_tried_again(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack("api", "gateway")
    someone = customer(stack)
    job = await someone.upload("faktur.pdf", pdf(10))
    for stored in (stack.home / "storage" / "uploads").rglob("*.pdf"):
        stored.unlink()
    stack.start("worker", WAYBILL_DOCUMENT_WAIT="0")
    ended = await someone.ended(job["id"])
    assert ended["status"] == "failed"
    assert ended["error"]["code"] == "EXPIRED"
    assert ended["attempt"] == 1


@pytest.mark.heavy
async def test_twenty_at_once_and_all_of_them_downloaded(make_stack: MakeStack, customer: Come) -> None:
    stack = await make_stack(*ALL)
    someone = customer(stack)
    files = [("files", (f"faktur {number}.pdf", pdf(100 + number, 2), "application/pdf")) for number in range(20)]
    answer = await someone.http.post("/api/uploads", files=files)
    assert answer.status_code == 201, answer.text
    jobs = [entry["job"]["id"] for entry in answer.json()["files"]]
    for job_id in jobs:
        assert (await someone.ended(job_id, within=120))["status"] == "complete"
    archive = await someone.http.get("/api/jobs/download", params={"ids": ",".join(jobs)})
    assert archive.status_code == 200
    assert archive.content[:2] == b"PK"


@pytest.mark.heavy
async def test_a_deploy_in_the_middle_costs_nobody_a_try(make_stack: MakeStack, customer: Come) -> None:
    async with sick_gateway(stalling) as slow:
        stack = await make_stack("api", "gateway")
        someone = customer(stack)
        job = await someone.upload("faktur.pdf", pdf(11))
        stack.start("worker", **_strange(slow.url), WAYBILL_SHUTDOWN_GRACE="0.2")

        async def converting() -> bool:
            return len(slow.requests) == 1

        await eventually(converting, within=30, every=0.05, what="the worker called its gateway")
        os.kill(stack.pid("worker"), signal.SIGTERM)
        await asyncio.to_thread(stack.wait, "worker")
    stack.start("worker")
    assert (await someone.ended(job["id"]))["status"] == "complete"
    assert await attempts(stack, job["id"]) == 0


async def test_a_wrong_secret_costs_no_attempt_and_the_document_is_converted_once_it_is_mended(
    make_stack: MakeStack, customer: Come
) -> None:
    stack = await make_stack("api", "gateway", **QUICK_BREAKER)
    someone = customer(stack)
    job = await someone.upload("faktur.pdf", pdf(12))
    stack.start("worker", WAYBILL_GATEWAY_SECRET="o" * 32)

    async def told() -> bool:
        (row,) = await stack.sql("SELECT error_message FROM jobs WHERE id = $1::text::uuid", job["id"])
        return "WAYBILL_GATEWAY_SECRET" in (row["error_message"] or "")

    await eventually(told, within=60, what="the job says which setting is wrong")
    assert await attempts(stack, job["id"]) == 0
    stack.stop("worker")
    stack.start("worker")
    assert (await someone.ended(job["id"]))["status"] == "complete"

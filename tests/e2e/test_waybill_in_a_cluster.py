"""Waybill on real pods: an upgrade and dying workers lose nothing, autoscaling starts and stops workers, traces arrive.

The tests run in this order on one release. Each also works alone, but for the trace, which needs a job.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from functools import partial

import pytest

from support.installed_waybill import InstalledWaybill, is_ready
from support.invoices import make_invoice, make_layout, print_invoice
from support.patience import wait_until

DOCUMENTS, WAVE = 50, 10
LINES = 600
"""On each invoice: enough that one takes a few seconds, and dying workers are busy."""

DELETIONS = 10
DONE = ("complete", "needs_review")


def test_helm_test_uploads_an_invoice_and_gets_its_xml(waybill: InstalledWaybill) -> None:
    said = waybill.cluster.helm("test", waybill.release.name, "--timeout=300s", f"--namespace={waybill.namespace}")
    assert "Succeeded" in said


def test_fifty_documents_survive_deleted_workers_and_a_rolling_upgrade(waybill: InstalledWaybill) -> None:
    documents = {
        f"invoice-{seed}.pdf": print_invoice(make_invoice(seed, LINES), make_layout(seed)) for seed in range(DOCUMENTS)
    }
    upgrade = threading.Thread(
        target=waybill.release.upgrade,
        args=("--wait",),
        kwargs={"within": 900, "image": {"tag": waybill.real.next_tag}},
    )
    with workers_dying(waybill) as deleted:
        jobs: dict[str, str] = {}
        for name, pdf in documents.items():
            jobs[name] = waybill.upload(name, pdf)
            if len(jobs) == WAVE:
                upgrade.start()
            if len(jobs) % WAVE == 0:  # however fast they are, workers die among all of them
                wanted = DELETIONS * len(jobs) // DOCUMENTS
                wait_until(partial(_have_died, deleted, wanted), f"{wanted} workers are deleted", 600, every=1)
        wait_until(lambda: _none_active(waybill), "all documents are done", within=900, every=1)
    upgrade.join()
    assert waybill.release.status()["version"] == 2
    wait_until(lambda: _all_of_tag(waybill, waybill.real.next_tag), "all workers are of the new release", 300, every=1)

    ours = {job["id"]: job for job in waybill.jobs() if job["id"] in jobs.values()}
    assert len(ours) == len(set(jobs.values())) == DOCUMENTS
    assert Counter(job["status"] for job in ours.values() if job["status"] not in DONE) == {}
    for job_id in ours:
        answer = waybill.api.request("GET", f"/api/jobs/{job_id}/download")
        assert answer.status_code == 200, answer.text
        assert answer.content.startswith(b"<?xml")
    listed = ", ".join(f"'{job_id}'" for job_id in ours)
    produced = waybill.rows(
        f"""
        SELECT j.id, j.state, j.crashes,
               (SELECT count(*) FROM job_events e WHERE e.job_id = j.id AND e.event = 'succeeded'),
               (SELECT count(*) FROM job_artefacts a WHERE a.job_id = j.id AND a.name = 'xml')
        FROM jobs j WHERE j.id IN ({listed})
        """
    )
    assert len(produced) == DOCUMENTS
    assert [row for row in produced if row[1:] != ["succeeded", "0", "1", "1"]] == [], (
        "each is produced once, uncharged"
    )
    runs = dict(waybill.rows(f"SELECT event, count(*) FROM job_events WHERE job_id IN ({listed}) GROUP BY event"))
    print(f"{len(deleted)} workers deleted, {sum(deleted.values())} of them by force; how runs ended: {runs}")
    assert len(deleted) >= DELETIONS, "the documents were done too early to show anything"
    assert len(runs) > 1, "no worker died with a document"


def test_a_flood_starts_workers_and_its_end_stops_them(waybill: InstalledWaybill) -> None:
    wait_until(lambda: len(waybill.ready_workers()) == 2, "two workers wait for work", within=300, every=1)
    started = time.monotonic()
    waybill.flood(500, seconds=4)
    wait_until(lambda: len(waybill.ready_workers()) >= 5, "the autoscaler has started workers", within=300, every=1)
    grown = time.monotonic()
    autoscaler = waybill.cluster.get("hpa", "waybill-worker", waybill.namespace)
    assert autoscaler["spec"]["scaleTargetRef"]["kind"] == "WorkerPool"
    wait_until(lambda: _none_active(waybill), "the flood is over", within=900, every=2)
    over = time.monotonic()
    wait_until(lambda: len(waybill.workers()) == 2, "the autoscaler has stopped workers", within=400, every=1)
    print(
        f"5 workers ready after {grown - started:.0f} s, done after {over - started:.0f} s,"
        f" 2 workers again {time.monotonic() - over:.0f} s later"
    )
    ended = waybill.rows("SELECT state, crashes, count(*) FROM jobs WHERE tenant = 'flood' GROUP BY state, crashes")
    assert ended == [["succeeded", "0", "500"]]
    twice = waybill.rows(
        """
        SELECT e.job_id FROM job_events e JOIN jobs j ON j.id = e.job_id
        WHERE j.tenant = 'flood' AND e.event = 'succeeded' GROUP BY e.job_id HAVING count(*) > 1
        """
    )
    assert twice == []


def test_jaeger_in_the_cluster_knows_a_job(waybill: InstalledWaybill) -> None:
    if not waybill.real.jaeger:
        pytest.skip("WAYBILL_E2E_JAEGER names no image")
    pdf = print_invoice(make_invoice(9999), make_layout(9999))
    job_id = waybill.upload("traced.pdf", pdf)
    wait_until(lambda: _status(waybill, job_id) in DONE, "the document is done", within=120, every=0.5)
    jaeger = waybill.jaeger()

    def services() -> set[str]:
        """The services that have spans in the job's trace, asked for by its id."""
        asked = {"service": "waybill-worker", "tags": json.dumps({"job.id": job_id}), "limit": "20"}
        answer = jaeger.request("GET", "/api/traces", params=asked)
        assert answer.status_code == 200, answer.text
        processes = [process for trace in answer.json()["data"] or () for process in trace["processes"].values()]
        return {process["serviceName"] for process in processes}

    try:
        wanted = {"waybill-api", "waybill-worker", "waybill-gateway"}
        wait_until(lambda: wanted <= services(), f"{wanted} have spans of the job", within=120, every=1)
    finally:
        jaeger.close()


@contextmanager
def workers_dying(waybill: InstalledWaybill) -> Iterator[dict[str, bool]]:
    """Delete a random worker every few seconds, every third one by force. Yields whom, and whether by force.

    One that is ready is always left: on a slow machine, deleting every worker that has just started would show nothing
    but that.
    """
    deleted: dict[str, bool] = {}
    over = threading.Event()
    dice = random.Random(50)

    def delete() -> None:
        while not over.wait(dice.uniform(1, 4)):
            alive = waybill.ready_workers()
            if len(alive) < 2:
                continue
            name = dice.choice(alive)["metadata"]["name"]
            by_force = len(deleted) % 3 == 2
            now = ["--grace-period=0", "--force"] if by_force else []
            waybill.cluster.kubectl(
                "delete", "pod", name, "--ignore-not-found", "--wait=false", *now, f"--namespace={waybill.namespace}"
            )
            deleted[name] = by_force

    thread = threading.Thread(target=delete)
    thread.start()
    try:
        yield deleted
    finally:
        over.set()
        thread.join()


def _have_died(deleted: Sized, wanted: int) -> bool:
    return len(deleted) >= wanted


def _none_active(waybill: InstalledWaybill) -> bool:
    active = waybill.rows("SELECT count(*) FROM jobs WHERE state IN ('scheduled', 'queued', 'running')")
    return active == [["0"]]


def _all_of_tag(waybill: InstalledWaybill, tag: str) -> bool:
    pods = waybill.workers()
    return len(pods) >= 2 and all(
        is_ready(pod) and pod["spec"]["containers"][0]["image"].endswith(f":{tag}") for pod in pods
    )


def _status(waybill: InstalledWaybill, job_id: str) -> str:
    status: str = waybill.api.request("GET", f"/api/jobs/{job_id}").json()["status"]
    return status

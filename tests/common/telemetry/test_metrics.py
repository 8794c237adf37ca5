"""Numbers, and the formats in which they are shown."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.scrapes import read
from waybill.telemetry import exposition, handover, spans, tenants
from waybill.telemetry.instruments import MOST_SERIES, REST, Counter, Gauge, Histogram
from waybill.telemetry.metrics import CATALOGUE, JOB_RUNNING, JOBS_FINISHED, LEASES_LOST, STORAGE_FREE


@pytest.fixture(autouse=True)
def _from_zero() -> Iterator[None]:
    yield
    for metric in CATALOGUE:
        metric.reset()


class Recorder:
    """As much of a recorder as an exemplar needs: the trace that is current."""

    def current_ids(self, *, sampled: bool = False) -> tuple[str, str] | None:
        return ("a" * 32, "b" * 16) if sampled else None


@pytest.fixture
def traced() -> Iterator[None]:
    spans.install(Recorder())  # type: ignore[arg-type]
    yield
    spans.install(None)


def test_a_histogram_counts_what_is_at_most_as_large_as_each_bound() -> None:
    for seconds in (0.01, 0.02, 400.0, 1e6):
        JOB_RUNNING.labels("work").observe(seconds)

    seen = read(exposition.written(exposition.own_families("worker"), openmetrics=False).decode())

    buckets = {one.labels["le"]: one.value for one in seen.find("waybill_job_running_seconds_bucket", kind="work")}
    assert (buckets["0.01"], buckets["0.025"], buckets["180.0"], buckets["600.0"], buckets["+Inf"]) == (1, 2, 2, 3, 4)
    assert seen.value("waybill_job_running_seconds_count", kind="work") == 4
    assert seen.value("waybill_job_running_seconds_sum", kind="work") == 0.03 + 400 + 1e6


def test_many_observations_at_once_count_as_one_by_one() -> None:
    seconds = [600.1, 0.0, 0.01, 0.0100001, 1e6, 5.0, 5.0, 0.025, 600.0]
    for one in seconds:
        JOB_RUNNING.labels("one by one").observe(one)
    JOB_RUNNING.labels("at once").observe_all(seconds)
    JOB_RUNNING.labels("at once").observe_all([])

    singly, together = JOB_RUNNING.labels("one by one"), JOB_RUNNING.labels("at once")
    assert together.counts == singly.counts
    assert together.sum == pytest.approx(singly.sum)


def test_what_nobody_measured_is_not_shown_and_what_never_happened_is_0() -> None:
    seen = read(exposition.written(exposition.own_families("api"), openmetrics=False).decode())
    assert seen.find(STORAGE_FREE.name) == []
    assert seen.value("waybill_upload_bytes_total") == 0
    assert seen.find(LEASES_LOST.name) == [], "the API runs no jobs"
    assert seen.value("process_resident_memory_bytes") > 0


def test_exemplars_name_the_trace_and_only_openmetrics_has_them(traced: None) -> None:
    JOB_RUNNING.labels("work").observe(0.5)
    JOB_RUNNING.labels("work").observe(5.0, "c" * 32)
    families = exposition.own_families("worker")

    rich = read(exposition.written(families, openmetrics=True).decode(), openmetrics=True)
    plain = exposition.written(families, openmetrics=False).decode()

    found = [one.exemplar for one in rich.find("waybill_job_running_seconds_bucket") if one.exemplar]
    assert [(one.labels, one.value) for one in found] == [({"trace_id": "a" * 32}, 0.5), ({"trace_id": "c" * 32}, 5.0)]
    assert "trace_id" not in plain


def test_all_services_write_valid_openmetrics() -> None:
    JOBS_FINISHED.labels('sp"ec\\ial\n', "succeeded", "").inc()
    for service in ("api", "gateway", "worker", "supervisor"):
        text = exposition.written(exposition.own_families(service), openmetrics=True).decode()
        assert read(text, openmetrics=True).families


def test_no_caller_can_make_series_without_end() -> None:
    counter = Counter("waybill_test_total", "A test.", ("name",), shown_by=())
    for number in range(MOST_SERIES + 500):
        counter.labels(str(number)).inc()
    series = dict(counter.series())
    assert len(series) == MOST_SERIES + 1
    assert series[(REST,)].value == 500


def test_tenants_have_no_series_unless_some_are_allowed() -> None:
    assert tenants.tenant_label("acme") == ""
    tenants.allow(2)
    try:
        assert [tenants.tenant_label(name) for name in ("acme", "shop", "third", "acme")] == [
            "acme",
            "shop",
            REST,
            "acme",
        ]
    finally:
        tenants.allow(0)


def test_a_wrong_number_of_labels_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="has the labels"):
        JOBS_FINISHED.labels("work")


def test_a_gauge_can_be_asked_when_somebody_looks() -> None:
    gauge = Gauge("waybill_test", "A test.", ("state",), shown_by=())
    numbers: dict[tuple[str, ...], float] = {("idle",): 1.0}
    gauge.ask(lambda: numbers)
    numbers[("busy",)] = 2.0
    assert {labels: one.value for labels, one in gauge.series()} == {("idle",): 1.0, ("busy",): 2.0}


def test_samples_survive_the_way_to_the_process_with_the_port(traced: None) -> None:
    JOB_RUNNING.labels("work").observe(0.5)
    JOBS_FINISHED.labels("work", "failed", "").inc(3)
    own = exposition.own_families("worker")

    merged = exposition.together([("1", own), ("2", exposition.unpacked(exposition.packed(own)))])

    seen = read(exposition.written(merged, openmetrics=True).decode(), openmetrics=True)
    assert seen.value("waybill_jobs_finished_total", process="2", outcome="failed") == 3
    assert seen.value("waybill_jobs_finished_total", outcome="failed") == 6
    assert len([one for one in seen.find("waybill_job_running_seconds_bucket", process="2") if one.exemplar]) == 1
    for wrong in (b"", b"{}x", b"[[1]]", b"[5]", b'["a"]'):
        with pytest.raises(ValueError):
            exposition.unpacked(wrong)


def test_numbers_that_a_process_left_are_added_once(tmp_path: Path) -> None:
    JOB_RUNNING.labels("work").observe(0.5)
    JOBS_FINISHED.labels("work", "failed", "").inc(3)
    left = tmp_path / "1-isolated.left"
    handover.leave(left)

    handover.take_over(left)
    handover.take_over(left)

    assert JOBS_FINISHED.labels("work", "failed", "").value == 6
    assert sum(JOB_RUNNING.labels("work").counts) == 2
    assert JOB_RUNNING.labels("work").sum == 1.0
    left.write_text("no numbers")
    handover.take_over(left)
    assert JOBS_FINISHED.labels("work", "failed", "").value == 6


def test_counting_does_not_import_prometheus_client() -> None:
    program = "import sys, waybill_engine.worker.program, waybill.storage; print('prometheus_client' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "False"


def test_histograms_sort_their_bounds() -> None:
    assert Histogram("waybill_test_seconds", "A test.", buckets=(5, 1), shown_by=()).buckets == (1, 5)

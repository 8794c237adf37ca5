"""The kinds of jobs of a batch. The batch itself is a family: `summarize_run` is the parent of all the others.

`process_batch` is its first child and adds the rest. So the engine runs the summary once, after the last child has
ended, whatever crashed in between; cancelling the parent cancels the batch.
"""

from __future__ import annotations

from dataclasses import replace

from waybill.config import load
from waybill_batches.settings import BatchSettings
from waybill_engine import JobKind, RetryPolicy

GATEWAY = "gateway"
STORAGE = "storage"
LANGUAGE_MODEL = "language_model"

CONVERT_PDF = "convert_pdf"
"""The kind of another pipeline that converts a file by a mapping. It is known by its name only."""

_RETRY = RetryPolicy(retries=3, base=2.0, jitter=0.0, jitter_share=0.5)


def _gateway_calls() -> int:
    return load(BatchSettings).gateway_calls


def _unpack_calls() -> int:
    return load(BatchSettings).batch_unpack_calls


def _model_calls() -> int:
    return load(BatchSettings).llm_calls


_MOST_QUESTIONS = 6
"""That one run asks the language model: what it refuses in one form is asked in another, and one answer is mended."""


def _model_time(kind: JobKind) -> JobKind:
    """A call ends before the run does, so that the handler is the one to say what was slow."""
    return replace(kind, time_limit=60.0 + _MOST_QUESTIONS * load(BatchSettings).llm_timeout)


def _batch_time(kind: JobKind) -> JobKind:
    return replace(kind, time_limit=load(BatchSettings).batch_unpack_time)


SUMMARIZE_RUN = JobKind("summarize_run", queue="batches", time_limit=300.0, retry=_RETRY, tells_end=True)
"""Payload: `batch`. Counts and totals of a batch whose files have all ended."""

PROCESS_BATCH = JobKind(
    "process_batch",
    queue="batches",
    time_limit=1800.0,
    retry=_RETRY,
    dependencies=(GATEWAY, STORAGE),
    default_cap=_unpack_calls,
    tells_end=True,
    configured=_batch_time,
)
"""Payload: `batch`. Unpacks the ZIP and enqueues a job for every file, or for a bundle of small ones."""

EXTRACT_FILE = JobKind(
    "extract_file",
    queue="batches",
    time_limit=900.0,
    retry=_RETRY,
    dependencies=(GATEWAY, STORAGE),
    default_cap=_gateway_calls,
    tells_end=True,
)
"""Payload: `batch`. The job's files are the rows that name it. Its cost is their bytes."""

ENRICH_FILE = JobKind(
    "enrich_file",
    queue="batches",
    time_limit=780.0,
    retry=_RETRY,
    dependencies=(LANGUAGE_MODEL, STORAGE),
    default_cap=_model_calls,
    tells_end=True,
    configured=_model_time,
)
"""Payload: `batch`. A language model fills the wanted fields of one extracted file, the row that names the job."""

KINDS = (SUMMARIZE_RUN, PROCESS_BATCH, EXTRACT_FILE, ENRICH_FILE)

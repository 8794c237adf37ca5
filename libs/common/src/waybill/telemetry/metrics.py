"""Every metric of the product: its name, what it means, its labels and its buckets. docs/metrics.md lists the same.

Labels have few values, all of them ours: kinds, states, codes, routes. A job's id is never a label, and a tenant only
if an operator allows some (`tenants`). `expect` lets series begin at 0, because Prometheus cannot see a counter grow
that was not there before.
"""

from __future__ import annotations

from collections.abc import Iterable

from waybill import __version__
from waybill.telemetry.instruments import Counter, Gauge, Histogram, Metric
from waybill.telemetry.tenants import TENANT

API, GATEWAY, WORKER, SUPERVISOR, OPERATOR = "api", "gateway", "worker", "supervisor", "operator"
ALL = (API, GATEWAY, WORKER, OPERATOR)

_QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds, for what usually takes milliseconds."""
_WORK = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180, 600)
"""Seconds, for what a job or a document does."""
_WAITS = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
"""Seconds, for how long a job waits. 300 is the objective that the alerts measure."""

# Jobs

JOBS_ENQUEUED = Counter(
    "waybill_jobs_enqueued_total",
    "Jobs that were enqueued by this process, once their transaction has committed.",
    ("kind", TENANT),
    shown_by=(API, WORKER),
)
JOBS_ENQUEUED_ELSEWHERE = Counter(
    "waybill_jobs_enqueued_elsewhere_total",
    "Jobs that no service enqueued, by what did: the SQL function (sql) or a command. Every replica shows the same.",
    ("kind", "by"),
    shown_by=(API,),
)
JOBS_CLAIMED = Counter(
    "waybill_jobs_claimed_total", "Jobs that this worker has claimed, retries included.", ("kind",), shown_by=(WORKER,)
)
JOBS_FINISHED = Counter(
    "waybill_jobs_finished_total",
    "Jobs that ended for good, by how they ended: succeeded, failed, dead_letter or cancelled.",
    ("kind", "outcome", TENANT),
    shown_by=(API, WORKER),
)
ATTEMPTS_FAILED = Counter(
    "waybill_attempts_failed_total",
    "Runs that failed, by the error's code, whether or not the job is tried again.",
    ("kind", "code"),
    shown_by=(WORKER,),
)
JOB_QUEUED = Histogram(
    "waybill_job_queued_seconds",
    "How long a claimed job had been runnable: since it was enqueued, became due or was returned.",
    ("kind",),
    buckets=_WAITS,
    shown_by=(WORKER,),
)
JOB_RUNNING = Histogram(
    "waybill_job_running_seconds",
    "How long a run took, however it ended.",
    ("kind",),
    buckets=_WORK,
    shown_by=(WORKER,),
)
JOB_END_TO_END = Histogram(
    "waybill_job_end_to_end_seconds",
    "How long a job took from being runnable for the first time until it ended, retries included; without cancelled"
    " jobs.",
    ("kind", TENANT),
    buckets=_WAITS,
    shown_by=(WORKER,),
)

# The shared sample, which the API shows

QUEUE_JOBS = Gauge(
    "waybill_queue_jobs",
    "Jobs that are queued, scheduled, running or dead letters, counted up to 100,000.",
    ("kind", "state"),
    shown_by=(API,),
)
QUEUE_OLDEST = Gauge(
    "waybill_queue_oldest_seconds",
    "For how long the oldest runnable job has waited; 0 when none waits.",
    ("kind",),
    shown_by=(API,),
)
WORKERS = Gauge("waybill_workers", "Worker processes by state.", ("state",), shown_by=(API,))
LIMIT_REACHED = Gauge(
    "waybill_limit_reached",
    "1 while a cap or a rate is used up, so that jobs wait for it.",
    ("kind", "limit"),
    shown_by=(API,),
)
SAMPLE_AGE = Gauge(
    "waybill_sample_age_seconds",
    "How old the shared sample is from which the gauges of queues, workers, limits and breakers come.",
    shown_by=(API,),
)
BREAKER_STATE = Gauge(
    "waybill_breaker_state",
    "1 for the state that a dependency's circuit breaker is in: closed, half_open or open.",
    ("dependency", "state"),
    shown_by=(API,),
)

# Leases and breakers

BREAKER_TRANSITIONS = Counter(
    "waybill_breaker_transitions_total",
    "Transitions of circuit breakers that this process caused, by the new state.",
    ("dependency", "to"),
    shown_by=(API, WORKER),
)
LEASES_LOST = Counter(
    "waybill_leases_lost_total",
    "Runs whose job was somebody else's before they could write their end.",
    shown_by=(WORKER,),
)
JOBS_RESCUED = Counter(
    "waybill_jobs_rescued_total",
    "Jobs that this worker took back from workers that are gone, by what was decided about them: crashed, suspected,"
    " released, dead_lettered or cancelled.",
    ("kind", "verdict"),
    shown_by=(WORKER,),
)
HEARTBEAT_LATE = Histogram(
    "waybill_heartbeat_late_seconds",
    "How much later than planned a worker renewed its lease.",
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 60),
    shown_by=(WORKER,),
)
LOOP_LAG = Histogram(
    "waybill_event_loop_lag_seconds",
    "How late the event loop was to run something that was due.",
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
    shown_by=ALL,
)

# Conversions

GATEWAY_REQUEST = Histogram(
    "waybill_gateway_request_seconds",
    "How long the gateway took for a document, by route and outcome: done, rejected (the document's or the caller's"
    " fault), refused (no place), failed (ours) or gone (the client hung up).",
    ("route", "outcome"),
    buckets=_WORK,
    shown_by=(GATEWAY,),
)
GATEWAY_DOCUMENTS = Counter(
    "waybill_gateway_documents_total",
    "Documents that arrived, by what their content is: pdf, docx, xlsx, text, json, xml, zip, or other.",
    ("kind",),
    shown_by=(GATEWAY,),
)
GATEWAY_STAGE = Histogram(
    "waybill_gateway_stage_seconds",
    "How long each stage inside the parser took.",
    ("stage",),
    buckets=_QUICK,
    shown_by=(GATEWAY,),
)
GATEWAY_PARSERS = Gauge(
    "waybill_gateway_parsers", "Parser processes: busy, idle, or missing.", ("state",), shown_by=(GATEWAY,)
)
GATEWAY_PARSER_DEATHS = Counter(
    "waybill_gateway_parser_deaths_total",
    "Parsers that died with a document, by cause: took_too_long, too_much_memory, crashed or killed.",
    ("cause",),
    shown_by=(GATEWAY,),
)
GATEWAY_WAITING = Gauge("waybill_gateway_waiting", "Documents that wait for a parser.", shown_by=(GATEWAY,))
GATEWAY_CALL = Histogram(
    "waybill_gateway_call_seconds",
    "How long a worker's call to the gateway took, by outcome: ok, or the code of the error.",
    ("outcome",),
    buckets=_WORK,
    shown_by=(WORKER,),
)
LANGUAGE_MODEL_CALL = Histogram(
    "waybill_language_model_call_seconds",
    "How long one question to the language model took, by outcome: ok, refused, or the code of the error.",
    ("outcome",),
    buckets=_WORK,
    shown_by=(WORKER,),
)
LANGUAGE_MODEL_TOKENS = Counter(
    "waybill_language_model_tokens_total",
    "Tokens that the language model used, by direction: in, out.",
    ("direction",),
    shown_by=(WORKER,),
)

# Uploads and storage

UPLOADS = Counter(
    "waybill_uploads_total",
    "Documents that were uploaded: created, reused (the same document was there) or refused.",
    ("outcome",),
    shown_by=(API,),
)
REVIEWS = Counter(
    "waybill_reviews_total",
    "Results that a person has to look at before anybody gets them: needed, approved as they were, or corrected.",
    ("outcome",),
    shown_by=(API, WORKER),
)
UPLOAD_BYTES = Counter("waybill_upload_bytes_total", "Bytes of accepted uploads.", shown_by=(API,))
STORAGE_OPERATION = Histogram(
    "waybill_storage_operation_seconds",
    "How long an operation on the storage took, by outcome: ok, missing, failed, or aborted by whoever"
    " asked for it. A stream counts until its end.",
    ("operation", "outcome"),
    buckets=_QUICK,
    shown_by=(API, WORKER),
)
STORAGE_BYTES = Counter(
    "waybill_storage_bytes_total",
    "Bytes read from the storage and written to it.",
    ("direction",),
    shown_by=(API, WORKER),
)
STORAGE_FREE = Gauge("waybill_storage_free_bytes", "Free bytes on the disk of a local storage.", shown_by=(API,))
STORAGE_SIZE = Gauge("waybill_storage_size_bytes", "The size of the disk of a local storage.", shown_by=(API,))

# The janitor, which is gone before anybody could ask it: the API shows its figures from the database

JANITOR_LAST_RUN = Gauge(
    "waybill_janitor_last_run_timestamp_seconds", "When the janitor's latest run started.", shown_by=(API,)
)
JANITOR_LAST_SUCCESS = Gauge(
    "waybill_janitor_last_success_timestamp_seconds",
    "When a run of the janitor last ended without a failed task.",
    shown_by=(API,),
)
JANITOR_RUN = Gauge("waybill_janitor_run_seconds", "How long the janitor's latest finished run took.", shown_by=(API,))
JANITOR_DONE = Counter(
    "waybill_janitor_done_total",
    "What the janitor has done since the beginning, by task and figure.",
    ("rule",),
    shown_by=(API,),
)

# Worker pools, which the operator keeps

WORKERS_WANTED = Gauge(
    "waybill_workers_wanted",
    "How many workers a pool should have, to drain its backlog in time. Missing while the database is away.",
    ("pool",),
    shown_by=(OPERATOR,),
)
OPERATOR_LEADER = Gauge(
    "waybill_operator_leader",
    "1 for the operator that holds the Lease and keeps the pools.",
    shown_by=(OPERATOR,),
)
OPERATOR_RECONCILE = Histogram(
    "waybill_operator_reconcile_seconds",
    "How long it took to look at a pool, by outcome: ok, refused (by the API server) or failed (a bug).",
    ("outcome",),
    buckets=_QUICK,
    shown_by=(OPERATOR,),
)
OPERATOR_FIGURES = Histogram(
    "waybill_operator_figures_seconds",
    "How long it took to read the backlog of all pools, by outcome: ok or failed.",
    ("outcome",),
    buckets=_QUICK,
    shown_by=(OPERATOR,),
)
OPERATOR_DEAD_WORKERS = Counter(
    "waybill_operator_workers_dead_total",
    "Workers whose jobs were taken back because of what happened to their pod, by what that was.",
    ("verdict",),
    shown_by=(OPERATOR,),
)

# Requests and connections

RATE_LIMITED = Counter(
    "waybill_rate_limited_total",
    "Requests that were refused with a 429, by the limit that they met.",
    ("limit",),
    shown_by=(API,),
)
HTTP_REQUESTS = Counter(
    "waybill_http_requests_total",
    "Requests by route and status. Whatever has no route is `unmatched`.",
    ("service", "method", "route", "status"),
    shown_by=(API, GATEWAY, OPERATOR),
)
HTTP_REQUEST = Histogram(
    "waybill_http_request_seconds",
    "How long it took until an answer began.",
    ("service", "method", "route"),
    buckets=_QUICK,
    shown_by=(API, GATEWAY, OPERATOR),
)
POOL_CONNECTIONS = Gauge(
    "waybill_database_pool_connections",
    "Connections to Postgres: used, idle, or free (not opened yet).",
    ("pool", "state"),
    shown_by=(API, WORKER, OPERATOR),
)
POOL_WAIT = Histogram(
    "waybill_database_pool_wait_seconds",
    "How long somebody waited for a connection.",
    buckets=_QUICK,
    shown_by=(API, WORKER, OPERATOR),
)

# The processes themselves

BUILD_INFO = Gauge(
    "waybill_build_info", "1 for the version that runs.", ("service", "version"), shown_by=(*ALL, SUPERVISOR)
)
PROCESSES_SILENT = Counter(
    "waybill_processes_silent_total",
    "Times that a process of this worker did not answer in time and is missing in an answer.",
    shown_by=(WORKER, SUPERVISOR),
)

CATALOGUE: tuple[Metric[object], ...] = tuple(
    metric for metric in list(globals().values()) if isinstance(metric, Metric)
)
OUTCOMES = ("succeeded", "failed", "dead_letter", "cancelled")


def expect(kinds: Iterable[str]) -> None:
    """Let the series of these kinds begin at 0, and what their runs count seldom."""
    for kind in kinds:
        JOBS_CLAIMED.labels(kind)
        JOB_QUEUED.labels(kind)
        JOB_RUNNING.labels(kind)
        JOBS_ENQUEUED.labels(kind, "")
        JOB_END_TO_END.labels(kind, "")
        for outcome in OUTCOMES:
            JOBS_FINISHED.labels(kind, outcome, "")
    REVIEWS.labels("needed")


def expect_limits() -> None:
    """The same for what the API counts seldom."""
    for outcome in ("approved", "corrected"):
        REVIEWS.labels(outcome)
    for limit in ("requests", "streams", "at_once", "uploads", "sign_in", "wrong_keys"):
        RATE_LIMITED.labels(limit)
    for outcome in ("created", "reused", "refused"):
        UPLOADS.labels(outcome)


def expect_parsers() -> None:
    for cause in ("took_too_long", "too_much_memory", "crashed", "killed"):
        GATEWAY_PARSER_DEATHS.labels(cause)


def begin(service: str) -> None:
    """This process is of this service."""
    BUILD_INFO.labels(service, __version__).set(1)

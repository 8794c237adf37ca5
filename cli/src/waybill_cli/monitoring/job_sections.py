"""What the dashboard shows of jobs: is it well, since when, what changed; then the queue and the conversions.

Figures of the queue come from one sample that every replica of the API shows, so they are taken with `max`, not `sum`.
"""

from __future__ import annotations

from waybill_cli.monitoring.panels import Panel, Query, Section, Steps, words
from waybill_cli.monitoring.promql import IN_TIME, quantile, quantiles, rate


def _stat(title: str, description: str, expression: str, **rest: object) -> Panel:
    return Panel(title, description, [Query(expression)], kind="stat", width=4, height=4, **rest)  # type: ignore[arg-type]


WELL = Section(
    "Is it well?",
    [
        _stat(
            "Alerts that fire",
            "Waybill's alert rules. Each has a section in docs/runbook.md that says what to do.",
            'count(ALERTS{alertname=~"Waybill.*", alertstate="firing"}) or vector(0)',
            steps=Steps(red=1),
        ),
        _stat(
            "Ended within five minutes",
            "Share of the last hour's jobs that ended within five minutes of being runnable. The objective is 99 %."
            " Jobs that still wait are not in it: see the oldest one.",
            f"sum(increase(waybill_job_end_to_end_seconds_bucket{{{IN_TIME}}}[1h])) "
            "/ (sum(increase(waybill_job_end_to_end_seconds_count[1h])) > 0)",
            unit="percentunit",
            steps=Steps(yellow=0.99, red=0.95, low_is_bad=True),
            nothing="no job ended",
        ),
        _stat(
            "Oldest job that waits",
            "How long the job has waited that has waited longest. waybill jobs explain ID says why it does.",
            'max(waybill_queue_oldest_seconds{kind=~"$kind"})',
            unit="s",
            steps=Steps(yellow=300, red=1800),
            nothing="nothing waits",
        ),
        _stat(
            "Time to drain",
            "How long the waiting jobs take at the pace of the last five minutes.",
            'sum(max by (namespace, kind) (waybill_queue_jobs{kind=~"$kind", state="queued"})) '
            '/ (sum(rate(waybill_jobs_finished_total{kind=~"$kind"}[5m])) > 0)',
            unit="s",
            steps=Steps(yellow=300, red=1800),
            nothing="no job ends",
        ),
        _stat(
            "Dead letters",
            "Jobs that used up their retries. They stay until a person decides: waybill dlq ls.",
            'sum(max by (namespace, kind) (waybill_queue_jobs{kind=~"$kind", state="dead_letter"}))',
            steps=Steps(yellow=1),
        ),
        _stat(
            "Workers",
            "Workers that live and claim jobs.",
            'max(waybill_workers{state="active"})',
            steps=Steps(red=1, low_is_bad=True),
        ),
        _stat(
            "Breakers not closed",
            "While a breaker is not closed, jobs that need its dependency wait and lose nothing: waybill breaker ls.",
            'sum(max by (namespace, dependency) (waybill_breaker_state{state=~"open|half_open"}))',
            steps=Steps(red=1),
        ),
        _stat(
            "Instances that do not answer",
            "Services that Prometheus cannot reach.",
            'count(up{job=~"waybill-(api|gateway|worker)"} == 0) or vector(0)',
            steps=Steps(red=1),
        ),
        _stat(
            "Waiting jobs",
            "Jobs that could run now.",
            'sum(max by (namespace, kind) (waybill_queue_jobs{kind=~"$kind", state="queued"}))',
        ),
        _stat(
            "Storage left",
            "Space on the disk of the storage. An object store has no such figure.",
            "min(waybill_storage_free_bytes / (waybill_storage_size_bytes > 0))",
            unit="percentunit",
            steps=Steps(yellow=0.15, red=0.05, low_is_bad=True),
            nothing="no disk",
        ),
        _stat(
            "Since the janitor's last success",
            "The janitor removes what is past its age, usually every quarter of an hour: waybill janitor history.",
            "time() - max(waybill_janitor_last_success_timestamp_seconds > 0)",
            unit="s",
            steps=Steps(yellow=3600, red=10800),
            nothing="never",
        ),
        _stat(
            "Age of the figures",
            "How old the newest sample of the queue is. Above two minutes, this page shows the past.",
            "min(waybill_sample_age_seconds)",
            unit="s",
            steps=Steps(yellow=60, red=120),
            nothing="no sample",
        ),
        Panel(
            "Alerts: since when",
            "Which alerts fired when. The vertical lines on all plots are new versions, open breakers and pages.",
            [
                Query(
                    'max by (alertname, severity) (ALERTS{alertname=~"Waybill.*", alertstate="firing"})',
                    "{{alertname}} ({{severity}})",
                )
            ],
            kind="state-timeline",
            width=24,
            height=5,
            nothing="none fired",
            defaults=words({"1": ("fires", "red")}),
        ),
    ],
)

QUEUE = Section(
    "Queue",
    [
        Panel(
            "Jobs that wait",
            "Jobs that could run now. Counting ends at 100,000 of each kind.",
            [Query('max by (kind) (waybill_queue_jobs{kind=~"$kind", state="queued"})', "{{kind}}")],
            stacked=True,
        ),
        Panel(
            "Age of the oldest job that waits",
            "Above five minutes the objective is missed, before any job has ended late.",
            [Query('max by (kind) (waybill_queue_oldest_seconds{kind=~"$kind"})', "{{kind}}")],
            unit="s",
            steps=Steps(yellow=300, red=1800),
        ),
        Panel(
            "Coming and going",
            "If more jobs come than end, the queue grows. If jobs are claimed and do not end, handlers are slow.",
            [
                Query(rate("waybill_jobs_enqueued_total", where='kind=~"$kind"'), "enqueued"),
                Query(rate("waybill_jobs_claimed_total", where='kind=~"$kind"'), "claimed"),
                Query(rate("waybill_jobs_finished_total", where='kind=~"$kind"'), "ended"),
            ],
            unit="ops",
        ),
        Panel(
            "Time that jobs wait",
            "From runnable to claimed. If it is long while workers are idle, look at caps, rates and breakers.",
            quantiles("waybill_job_queued_seconds", by="kind", where='kind=~"$kind"'),
            unit="s",
        ),
        Panel(
            "Scheduled and running",
            "Scheduled jobs wait for their time, retries among them.",
            [
                Query(f'max by (kind) (waybill_queue_jobs{{kind=~"$kind", state="{state}"}})', f"{{{{kind}}}} {state}")
                for state in ("running", "scheduled")
            ],
        ),
        Panel(
            "Dead letters",
            "A step upwards is new: waybill dlq ls.",
            [Query('max by (kind) (waybill_queue_jobs{kind=~"$kind", state="dead_letter"})', "{{kind}}")],
        ),
        Panel(
            "Limits that are reached",
            "Caps and rates that hold jobs back on purpose: waybill caps ls, waybill rates ls.",
            [Query("max by (kind, limit) (waybill_limit_reached)", "{{kind}} {{limit}}")],
            kind="state-timeline",
            nothing="there are none",
            defaults=words({"0": ("free", "green"), "1": ("reached", "orange")}),
        ),
        Panel(
            "Requests that were refused for their rate",
            "Visitors who ask too often get 429.",
            [Query(rate("waybill_rate_limited_total", by="limit"), "{{limit}}")],
            unit="reqps",
        ),
        Panel(
            "Uploads",
            "Documents that arrived, by what became of them.",
            [Query(rate("waybill_uploads_total", by="outcome"), "{{outcome}}")],
            unit="ops",
        ),
    ],
)

CONVERSIONS = Section(
    "Conversions",
    [
        Panel(
            "Ended, by outcome",
            "failed is the document's fault, dead_letter is ours or a dependency's.",
            [Query(rate("waybill_jobs_finished_total", by="outcome", where='kind=~"$kind"'), "{{outcome}}")],
            unit="ops",
            stacked=True,
        ),
        Panel(
            "Attempts that failed, by error",
            "The codes of docs/api.md. GW_5XX and GW_TIMEOUT point to the gateway, IO_ERROR to the storage.",
            [Query(rate("waybill_attempts_failed_total", by="kind, code", where='kind=~"$kind"'), "{{kind}} {{code}}")],
            unit="ops",
        ),
        Panel(
            "Results that a person has to look at",
            "needed is new, approved and corrected are done. If needed stays above the others, a pile grows in /queue.",
            [Query(rate("waybill_reviews_total", by="outcome"), "{{outcome}}")],
            unit="ops",
        ),
        Panel(
            "Ended within five minutes",
            "Share of jobs, by kind. The objective is 99 % of all.",
            [
                Query(
                    f'sum by (kind) (rate(waybill_job_end_to_end_seconds_bucket{{kind=~"$kind", {IN_TIME}}}'
                    "[$__rate_interval])) / (sum by (kind) (rate(waybill_job_end_to_end_seconds_count"
                    '{kind=~"$kind"}[$__rate_interval])) > 0)',
                    "{{kind}}",
                )
            ],
            unit="percentunit",
            steps=Steps(yellow=0.99, red=0.95, low_is_bad=True),
            defaults={"max": 1},
        ),
        Panel(
            "Time from runnable to the end",
            "What a customer waits for, retries included.",
            quantiles("waybill_job_end_to_end_seconds", by="kind", where='kind=~"$kind"'),
            unit="s",
        ),
        Panel(
            "Time of a run",
            "From claimed to the end of the run. Compare it with the gateway's time below.",
            quantiles("waybill_job_running_seconds", by="kind", where='kind=~"$kind"'),
            unit="s",
        ),
        Panel(
            "Calls of the gateway, as workers see them",
            "Network and waiting included.",
            quantiles("waybill_gateway_call_seconds", by="outcome"),
            unit="s",
        ),
        Panel(
            "Storage: time of an operation",
            "By operation; a slow storage slows uploads and runs.",
            [Query(quantile(0.95, "waybill_storage_operation_seconds", by="operation"), "{{operation}} p95")],
            unit="s",
        ),
        Panel(
            "Storage: operations, by outcome",
            "Errors open the breaker of the storage.",
            [Query(rate("waybill_storage_operation_seconds_count", by="outcome"), "{{outcome}}")],
            unit="ops",
        ),
        Panel(
            "Bytes",
            "Received from visitors, read from and written to the storage.",
            [
                Query("sum(rate(waybill_upload_bytes_total[$__rate_interval]))", "uploaded"),
                Query(rate("waybill_storage_bytes_total", by="direction"), "storage {{direction}}"),
            ],
            unit="Bps",
        ),
    ],
)

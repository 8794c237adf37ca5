"""What the dashboard shows of the services: the gateway, the fleet of processes, and the janitor."""

from __future__ import annotations

from waybill_cli.monitoring.panels import Panel, Query, Section, Steps, words
from waybill_cli.monitoring.promql import quantile, quantiles, rate

GATEWAY = Section(
    "Gateway",
    [
        Panel(
            "Time of a request",
            "By route and outcome, waiting for a parser included.",
            [
                Query(
                    quantile(0.95, "waybill_gateway_request_seconds", by="route, outcome"), "{{route}} {{outcome}} p95"
                )
            ],
            unit="s",
        ),
        Panel(
            "Requests, by outcome",
            "refused means that every parser is in use and the line is full: add gateways.",
            [Query(rate("waybill_gateway_request_seconds_count", by="outcome"), "{{outcome}}")],
            unit="reqps",
            stacked=True,
        ),
        Panel(
            "Time of each stage",
            "Where a document spends its time.",
            [Query(quantile(0.95, "waybill_gateway_stage_seconds", by="stage"), "{{stage}} p95")],
            unit="s",
        ),
        Panel(
            "Parsers",
            "Parser processes by state. All busy for long means that gateways are too few.",
            [Query("sum by (state) (waybill_gateway_parsers)", "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Documents that wait for a parser",
            "More than none for minutes: add gateways, or processes (WAYBILL_GATEWAY_PROCESSES).",
            [Query("sum(waybill_gateway_waiting)", "waiting")],
            steps=Steps(yellow=1),
        ),
        Panel(
            "Parsers that died",
            "By cause. A document that kills its parser fails; the others go on.",
            [Query("sum by (cause) (increase(waybill_gateway_parser_deaths_total[$__rate_interval]))", "{{cause}}")],
        ),
    ],
)

FLEET = Section(
    "Fleet",
    [
        Panel(
            "Workers",
            "active ones claim, draining ones finish what they have, expired ones have lost their lease.",
            [Query("max by (state) (waybill_workers)", "{{state}}")],
            stacked=True,
        ),
        Panel(
            "Breakers",
            "One line for each dependency. waybill breaker show NAME says why it opened.",
            [
                Query(
                    'max by (dependency) (waybill_breaker_state{state="open"}) * 2 '
                    '+ max by (dependency) (waybill_breaker_state{state="half_open"})',
                    "{{dependency}}",
                )
            ],
            kind="state-timeline",
            defaults=words({"0": ("closed", "green"), "1": ("half open", "yellow"), "2": ("open", "red")}),
        ),
        Panel(
            "Breakers: transitions",
            "How often each changes its state.",
            [
                Query(
                    "sum by (dependency, to) (increase(waybill_breaker_transitions_total[$__rate_interval]))",
                    "{{dependency}} to {{to}}",
                )
            ],
        ),
        Panel(
            "Leases lost, jobs rescued",
            "A worker that lives loses a lease if it cannot renew in time. Jobs of workers that died are rescued.",
            [
                Query("sum(increase(waybill_leases_lost_total[$__rate_interval]))", "leases lost"),
                Query(
                    "sum by (verdict) (increase(waybill_jobs_rescued_total[$__rate_interval]))", "rescued: {{verdict}}"
                ),
            ],
        ),
        Panel(
            "Heartbeats: how late",
            "A lease is lost after 60 s. Seconds here mean a slow database or too little CPU.",
            [Query(quantile(0.99, "waybill_heartbeat_late_seconds"), "p99")],
            unit="s",
        ),
        Panel(
            "Event loop: lag",
            "How long a process was deaf. Long lags come from handlers that block, or from too little CPU.",
            [Query(quantile(0.99, "waybill_event_loop_lag_seconds", by="job"), "{{job}} p99")],
            unit="s",
        ),
        Panel(
            "HTTP: requests, by status",
            "A rise of 5xx is ours, of 429 a visitor's who asks too often.",
            [Query(rate("waybill_http_requests_total", by="service, status"), "{{service}} {{status}}")],
            unit="reqps",
        ),
        Panel(
            "HTTP: time",
            "By service; slow routes are named in the table of routes.",
            quantiles("waybill_http_request_seconds", by="service"),
            unit="s",
        ),
        Panel(
            "HTTP: slowest routes",
            "The ten routes with the longest p95.",
            [
                Query(
                    f"topk(10, {quantile(0.95, 'waybill_http_request_seconds', by='service, method, route')})",
                    "{{service}} {{method}} {{route}}",
                )
            ],
            unit="s",
        ),
        Panel(
            "Database: connections",
            "Connections of all pools by state. None idle and a long wait mean that pools are too small.",
            [Query("sum by (job, state) (waybill_database_pool_connections)", "{{job}} {{state}}")],
        ),
        Panel(
            "Database: wait for a connection",
            "How long a request or a job waits for its turn.",
            [Query(quantile(0.95, "waybill_database_pool_wait_seconds", by="job"), "{{job}} p95")],
            unit="s",
        ),
        Panel(
            "Versions",
            "How many instances run which version. Two at once are an upgrade under way.",
            [Query("count by (service, version) (waybill_build_info)", "{{service}} {{version}}")],
            stacked=True,
        ),
    ],
)

JANITOR = Section(
    "Janitor",
    [
        Panel(
            "Since the last run and the last success",
            "A saw with teeth of a quarter of an hour is healthy. waybill janitor history says what failed.",
            [
                Query("time() - max(waybill_janitor_last_run_timestamp_seconds > 0)", "last run"),
                Query("time() - max(waybill_janitor_last_success_timestamp_seconds > 0)", "last success"),
            ],
            unit="s",
            steps=Steps(red=10800),
        ),
        Panel(
            "Done, by task",
            "What retention and upkeep did. Nothing for days: there was nothing to do, or a hold is on.",
            # Every replica of the API shows the same totals. Bytes would dwarf everything else.
            [
                Query(
                    'max by (rule) (increase(waybill_janitor_done_total{rule!~".*bytes"}[$__rate_interval]))',
                    "{{rule}}",
                )
            ],
        ),
        Panel(
            "Time of a run",
            "How long the last run took.",
            [Query("max(waybill_janitor_run_seconds)", "last run")],
            unit="s",
        ),
        Panel(
            "Space on the disk of the storage",
            "Free space beside the size. An object store has no such figure.",
            [
                Query("min(waybill_storage_free_bytes)", "free"),
                Query("max(waybill_storage_size_bytes)", "size"),
            ],
            unit="bytes",
            width=16,
            nothing="no disk",
        ),
        Panel(
            "Age of the sample",
            "How old the figures of the queue are. It should stay below half a minute.",
            [Query("min(waybill_sample_age_seconds)", "age")],
            unit="s",
            steps=Steps(red=120),
        ),
    ],
)

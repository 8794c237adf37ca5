"""A real Prometheus scrapes services that convert documents. Every alert rule and every panel finds its figures."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from endtoend.conftest import MakeStack
from observability.expressions import RULES, alerts, all_expressions, selectors
from support.child_processes import free_port
from support.command_line import Waybill
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_amount
from support.patience import PATIENCE, eventually
from support.prometheus import Prometheus, prometheus
from support.stack import Stack

pytestmark = pytest.mark.timeout(300)

WITHOUT_DATA = {
    'ALERTS{namespace=~".*", alertname=~"Waybill.*", alertstate="firing"}': "no alert fires while all is well",
    'ALERTS{namespace=~".*", alertname=~"Waybill.*", alertstate="firing", severity="page"}': "nor does a page",
}
"""Selectors that find nothing in a system that is well, and why."""


async def test_every_expression_can_be_evaluated_and_finds_what_it_asks_for(
    make_stack: MakeStack, customer: Callable[[Stack], Customer], bare: Waybill, tmp_path: Path
) -> None:
    ports = {name: free_port() for name in ("api", "gateway", "worker")}
    stack = await make_stack(
        "api",
        "gateway",
        "worker",
        **{f"WAYBILL_{name.upper()}_METRICS_PORT": str(port) for name, port in ports.items()},
        WAYBILL_SAMPLE_INTERVAL="1",
        WAYBILL_LEASE_TTL="4",
        WAYBILL_HEARTBEAT_INTERVAL="1",
        WAYBILL_RESCUE_INTERVAL="0.5",
    )
    targets = {f"waybill-{name}": f"127.0.0.1:{port}" for name, port in ports.items()}
    async with prometheus(tmp_path / "prometheus", targets, RULES) as server:
        await eventually(lambda: _all_up(server), within=PATIENCE, every=0.2, what="every service is scraped")
        await _some_life(stack, customer(stack), bare)
        await _the_objective_is_measured(server)
        await _some_trouble(stack, customer(stack), bare)

        missing = {each for expression in all_expressions() for each in selectors(expression)} - set(WITHOUT_DATA)
        assert len(missing) > 60

        async def all_found() -> bool:
            missing.intersection_update(await _without_data(server, missing))
            return not missing

        with contextlib.suppress(AssertionError):
            await eventually(all_found, within=PATIENCE, every=0.5)
        assert not missing, "nothing was found for:\n" + "\n".join(sorted(missing))
        for expression in all_expressions():
            await server.query(expression)
        assert await _health_of_rules(server) == {alert["alert"]: "ok" for alert in alerts()}


async def _all_up(server: Prometheus) -> bool:
    return set((await server.targets()).values()) == {"up"}


async def _some_life(stack: Stack, someone: Customer, bare: Waybill) -> None:
    """Two documents, one of them wrong; limits; a run of the janitor."""
    for arguments in (
        ("caps", "set", "5", "--kind", "convert_pdf"),
        ("rates", "set", "1000", "--per", "60", "--kind", "convert_pdf"),
    ):
        assert (await bare(*arguments, WAYBILL_DATABASE_URL=stack.database_url)).code == 0
    good = await someone.upload("good.pdf", print_invoice(make_invoice(1, 3), REFERENCE))
    wrong = await someone.upload("wrong.pdf", print_invoice(wrong_amount(make_invoice(2, 5), 3), REFERENCE))
    assert (await someone.ended(good["id"]))["status"] == "complete"
    assert (await someone.ended(wrong["id"]))["status"] == "failed"
    stack.start("janitor")
    await asyncio.to_thread(stack.wait, "janitor")


async def _some_trouble(stack: Stack, someone: Customer, bare: Waybill) -> None:
    """A worker dies with a job, so another one rescues it; and the gateway is gone, so its breaker opens."""
    payload = '{"steps": 1, "seconds_per_step": 60}'
    ran = await bare("jobs", "enqueue", "selftest", "--payload", payload, WAYBILL_DATABASE_URL=stack.database_url)
    assert ran.code == 0, ran.err

    async def running() -> bool:
        return bool(await stack.sql("SELECT FROM jobs WHERE kind = 'selftest' AND state = 'running'"))

    await eventually(running, within=PATIENCE, every=0.1, what="the job is running")
    stack.stop("worker")
    stack.stop("gateway")
    stack.start("worker")
    await someone.upload("late.pdf", print_invoice(make_invoice(3, 3), REFERENCE))


async def _without_data(server: Prometheus, wanted: set[str]) -> set[str]:
    return {each for each in wanted if not await server.query(f"last_over_time({each}[1h])")}


async def _the_objective_is_measured(server: Prometheus) -> None:
    """Both jobs ended in time, and the bucket of five minutes is found, whatever its label looks like."""

    async def counted() -> bool:
        ended = await server.query("sum(waybill_job_end_to_end_seconds_count)")
        in_time = await server.query('sum(waybill_job_end_to_end_seconds_bucket{le=~"300(\\\\.0)?"})')
        return [each["value"][1] for each in (*ended, *in_time)] == ["2", "2"]

    await eventually(counted, within=PATIENCE, every=0.5, what="two jobs that ended in time")


async def _health_of_rules(server: Prometheus) -> dict[str, str]:
    groups = (await server.get("/api/v1/rules?type=alert"))["groups"]
    return {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}

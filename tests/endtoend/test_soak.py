"""Ten minutes of ordinary and rude visitors, and no service needs more memory at the end than after its warm-up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_subtotal
from support.memory import proportional, resident
from support.stack import Stack

MINUTES = float(os.environ.get("WAYBILL_TEST_SOAK_MINUTES", "10"))
WARM_UP = 0.3
"""The share of the time in which caches fill and pools grow."""
SERVICES = ("api", "gateway", "worker")
MAY_GROW = 24.0
"""Megabytes between the first and the last third after the warm-up, for a service with all its processes."""
MAY_GROW_ALONE = 1.5
"""Megabytes per minute that the service's own process may gain, by the slope of all samples."""
EVERY = 2.0
FINE = {200, 201, 202, 204, 303, 304, 404, 409, 422, 429, 503}

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(MINUTES * 60 + 300)]


@dataclass
class Soak:
    """What all visitors share: when to stop, and what they have seen."""

    stack: Stack
    ends: float = field(default_factory=lambda: time.monotonic() + MINUTES * 60)
    dice: random.Random = field(default_factory=lambda: random.Random(5))
    did: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def over(self) -> bool:
        return time.monotonic() > self.ends

    def document(self, number: int) -> bytes:
        """A new document each time: the same bytes would be recognised and not converted again."""
        invoice = make_invoice(number % 12, 1 + number % 25)
        printed = print_invoice(wrong_subtotal(invoice) if number % 5 == 0 else invoice, REFERENCE)
        return printed + f"\n% {number} {self.dice.random()}\n".encode()

    async def again(self, visit: Callable[[], Awaitable[None]]) -> None:
        """Repeat a visit until the time is over. On a busy machine an answer may be too late for a client."""
        while not self.over():
            try:
                await visit()
            except httpx.TimeoutException:
                self.did["too late"] += 1

    def saw(self, what: str, answer: httpx.Response) -> None:
        self.did[what] += 1
        if answer.status_code not in FINE:
            self.wrong.append(f"{what}: {answer.status_code} {answer.text[:200]}")


async def uploads(soak: Soak, customer: Customer, seed: int) -> None:
    """Upload, wait, look, correct, download, and delete."""
    number = seed + 1000 * soak.did["too late"]
    while not soak.over():
        number += 100
        answer = await customer.http.post("/api/upload", files={"file": ("faktur.pdf", soak.document(number))})
        soak.saw("upload", answer)
        if answer.status_code != 201:
            await asyncio.sleep(1.0)
            continue
        job = answer.json()["job"]["id"]
        with contextlib.suppress(AssertionError):  # a slow machine: the job goes on without this visitor
            soak.did[(await customer.ended(job, within=60))["status"]] += 1
        soak.saw("review", await customer.http.get(f"/review/{job}"))
        change = {"base": 0, "changes": [{"path": "buyer_name", "value": f"PT {number}"}], "accept": True}
        soak.saw("preview", await customer.http.post(f"/api/jobs/{job}/revisions", json={**change, "preview": True}))
        soak.saw("correct", await customer.http.post(f"/api/jobs/{job}/revisions", json=change))
        soak.saw("page", await customer.http.get(f"/api/jobs/{job}/pages/1"))
        soak.saw("download", await customer.http.get(f"/api/jobs/{job}/download"))
        soak.saw("delete", await customer.http.delete(f"/api/jobs/{job}"))


async def reads(soak: Soak, customer: Customer) -> None:
    while not soak.over():
        for path in ("/queue", "/api/jobs?limit=50", "/", "/readyz", "/livez", "/api/jobs/nothing"):
            soak.saw("read", await customer.http.get(path))
        await asyncio.sleep(0.3)


async def follows(soak: Soak, customer: Customer) -> None:
    """Follow the stream for a while, leave, and come back."""
    while not soak.over():
        with contextlib.suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(soak.dice.uniform(0.2, 5.0)):
                async with customer.http.stream("GET", "/api/stream") as answer:
                    soak.did["stream"] += 1
                    async for _ in answer.aiter_lines():
                        if soak.over():
                            return
        await asyncio.sleep(0.1)


async def leaves(soak: Soak, customer: Customer) -> None:
    """Ask for much, and hang up before it comes: in the midst of an upload, of a review, of a download."""
    job = (await customer.upload("faktur.pdf", soak.document(60)))["id"]
    document = soak.document(61)

    async def half() -> Any:
        yield document[: len(document) // 2]
        await asyncio.sleep(3600)

    requests: list[Callable[[], Awaitable[Any]]] = [
        lambda: customer.http.get(f"/review/{job}"),
        lambda: customer.http.get(f"/api/jobs/{job}/provenance"),
        lambda: customer.http.get(f"/api/jobs/{job}/pages/1?scale=3"),
        lambda: customer.http.post(
            "/api/upload", content=half(), headers={"Content-Type": "multipart/form-data; boundary=x"}
        ),
    ]
    while not soak.over():
        with contextlib.suppress(TimeoutError, httpx.HTTPError):
            async with asyncio.timeout(soak.dice.uniform(0.005, 0.2)):
                await soak.dice.choice(requests)()
        soak.did["left"] += 1
        await asyncio.sleep(0.2)


@dataclass
class Memory:
    """Megabytes of one service over time."""

    at: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)

    def slope(self) -> float:
        """Megabytes per minute of the service's own process."""
        return statistics.linear_regression(self.at, self.alone).slope * 60

    def growth(self) -> float:
        """Megabytes by which all its processes have grown; medians, because parsers come and go."""
        third = max(1, len(self.together) // 3)
        return statistics.median(self.together[-third:]) - statistics.median(self.together[:third])

    def __str__(self) -> str:
        return (
            f"{statistics.median(self.alone):.0f} MB alone, {self.slope():+.2f} MB a minute;"
            f" {statistics.median(self.together):.0f} MB together, {self.growth():+.1f} MB"
        )


async def watch(soak: Soak, found: dict[str, Memory]) -> None:
    began = time.monotonic()
    warm = began + MINUTES * 60 * WARM_UP
    while not soak.over():
        if time.monotonic() > warm:
            for name, memory in found.items():
                pid = soak.stack.pid(name)
                memory.at.append(time.monotonic() - began)
                memory.alone.append(proportional(pid))
                memory.together.append(await asyncio.to_thread(resident, pid))
        await asyncio.sleep(EVERY)


async def test_ten_minutes_of_visitors_leave_no_memory_behind(
    database_url: str, tmp_path: Path, customer: Callable[[Stack], Customer]
) -> None:
    stack = Stack(
        database_url,
        tmp_path,
        shared_imports=False,  # pages that are shared with other processes would look like growth when they part
        WAYBILL_API_READS_PER_MINUTE="0",
        WAYBILL_API_ADDRESS_READS_PER_MINUTE="0",
        WAYBILL_API_UPLOADS_PER_MINUTE="10000",
        WAYBILL_API_ADDRESS_UPLOADS_PER_MINUTE="0",
    )
    try:
        await stack.start_all(*SERVICES)
        await _soak(Soak(stack), customer)
    finally:
        stack.close()


async def _soak(soak: Soak, customer: Callable[[Stack], Customer]) -> None:
    stack, found = soak.stack, {name: Memory() for name in SERVICES}
    async with asyncio.TaskGroup() as visitors:
        visitors.create_task(watch(soak, found))
        for seed in range(2):
            visitors.create_task(soak.again(partial(uploads, soak, customer(stack), seed)))
        visitors.create_task(soak.again(partial(reads, soak, customer(stack))))
        visitors.create_task(follows(soak, customer(stack)))
        visitors.create_task(soak.again(partial(leaves, soak, customer(stack))))

    print(dict(soak.did))
    for name, memory in found.items():
        print(f"{name}: {memory}, {len(memory.at)} samples")
    assert not soak.wrong
    assert min(soak.did[what] for what in ("upload", "complete", "correct", "download", "stream", "left")) > 0
    assert {name: memory.growth() for name, memory in found.items() if memory.growth() > MAY_GROW} == {}
    assert {name: memory.slope() for name, memory in found.items() if memory.slope() > MAY_GROW_ALONE} == {}
    for name in SERVICES:
        assert "Traceback" not in (stack.folder / f"{name}.log").read_text()

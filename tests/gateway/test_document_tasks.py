"""Damaged copies of good PDFs: hundreds of accidents, no fault of ours, and a pool that is alive at the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from support import bad_pdfs
from support.gateway import Gateway
from support.invoices import print_invoice, reference_invoice
from waybill_gateway.content_negotiation import CONVERSION, JSON

MAPPING = "pt_simon_invoice_v1"
SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "invoices"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[Gateway]:
    gateway = Gateway(
        tmp_path, gateway_processes="2", gateway_parse_timeout="10", gateway_memory_mb="512", gateway_queue="20"
    )
    yield gateway
    gateway.close()


def originals() -> list[bytes]:
    ours = [print_invoice(*reference_invoice(8)), bad_pdfs.good(), bad_pdfs.encrypted_for_show(), bad_pdfs.image_only()]
    theirs = sorted(path for path in SHARED.rglob("*.pdf") if path.stat().st_size < 200_000) if SHARED.exists() else []
    return ours + [path.read_bytes() for path in theirs[:12]]


def survive(gateway: Gateway, count: int, *, first: int = 0) -> Counter[str]:
    """Send that many accidents; how often which verdict was given."""
    known = originals()
    before = gateway.memory()

    def send(seed: int) -> tuple[int, httpx.Response]:
        document = bad_pdfs.mutated(known[seed % len(known)], seed, other=known[(seed * 7 + 1) % len(known)])
        if seed % 2:
            return seed, gateway.send(document, accept=JSON)
        return seed, gateway.send(document, accept=CONVERSION, mapping=MAPPING)

    verdicts: Counter[str] = Counter()
    with ThreadPoolExecutor(4) as threads:
        for seed, answer in threads.map(send, range(first, first + count)):
            assert answer.status_code in (200, 406, 415, 422), (
                f"seed {seed}: {answer.text[:500]}\n{gateway.log_text[-3000:]}"
            )
            verdicts[answer.json().get("fault", str(answer.status_code))] += 1
    assert gateway.client.get("/readyz").status_code == 200
    assert gateway.send(bad_pdfs.good()).status_code == 200
    assert gateway.spooled() == []
    assert gateway.memory() - before < 30 * 1024 * 1024
    return verdicts


def test_a_few_hundred_accidents(gateway: Gateway) -> None:
    verdicts = survive(gateway, 300)
    assert verdicts["200"] > 10, verdicts
    assert verdicts["unreadable"] > 10, verdicts


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_ten_thousand_accidents(gateway: Gateway) -> None:
    survive(gateway, 10_000, first=1_000)

"""A person reviews, corrects and downloads a document that failed, through real processes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from lxml import etree

from endtoend.conftest import MakeStack
from support.customers import Customer
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import wrong_amount
from support.stack import Stack

pytestmark = pytest.mark.timeout(180)


async def test_what_failed_is_reviewed_and_corrected(
    make_stack: MakeStack, customer: Callable[[Stack], Customer]
) -> None:
    stack = await make_stack("api", "gateway", "worker")
    someone = customer(stack)
    invoice = make_invoice(5, 10)
    job = await someone.upload("faktur.pdf", print_invoice(wrong_amount(invoice, 4), REFERENCE))
    ended = await someone.ended(job["id"])
    assert ended["status"] == "failed"
    revisions = ended["links"]["revisions"]

    (finding,) = (await someone.http.get(f"{revisions}/0")).json()["findings"]
    assert finding["path"] == "lines[3].amount"
    page = await someone.http.get(f"/api/jobs/{job['id']}/pages/{finding['page']}?scale=1")
    assert (page.status_code, page.content[:4]) == (200, b"\x89PNG"), page.text
    # The misprinted amount also changed the totals below it, so all of them must be corrected together.
    right = {
        "lines[3].amount": invoice.lines[3].amount,
        "subtotal": invoice.subtotal,
        "other_tax_base": invoice.dpp,
        "vat_total": invoice.ppn,
        "total": invoice.total,
    }
    changes = [{"path": path, "value": f"{value:.2f}"} for path, value in right.items()]
    early = await someone.http.post(revisions, json={"base": 0, "changes": changes[:1]})
    assert early.status_code == 422, early.text
    saved = await someone.http.post(revisions, json={"base": 0, "changes": changes})

    assert saved.status_code == 201, saved.text
    assert (await someone.job(job["id"]))["status"] == "complete"
    goods = etree.fromstring(await someone.download(job["id"])).findall(".//GoodService")
    assert [each.findtext("Name") for each in goods] == [line.description for line in invoice.lines]

"""`/queue`: whole, as the part that changes, and for any address."""

from __future__ import annotations

from datetime import UTC, datetime

import httpx

from support.views import job
from waybill.web.languages import ENGLISH
from waybill.web.layout import Frame, render
from waybill_convert.pages.queue import QueueQuery, queue, shown
from waybill_convert.status import Status
from waybill_convert.views import Fault, Listing


async def test_the_queue_is_also_served_as_the_part_that_changes(browser: httpx.AsyncClient) -> None:
    whole = await browser.get("/queue")
    part = await browser.get("/queue", headers={"HX-Request": "true"})
    assert "<html" in whole.text
    assert "<html" not in part.text
    assert 'id="counts"' in part.text
    assert "HX-Request" in part.headers["vary"]


def test_addresses_are_read_leniently() -> None:
    assert shown(status="nonsense", q="  a\x00b ", limit="many") == QueueQuery(words="ab")
    assert shown(limit="100000").limit == 500
    assert shown(limit="0").limit == 1
    assert QueueQuery("failed", "a&b").query(cursor="c") == "?status=failed&q=a%26b&cursor=c"


def test_five_hundred_rows_fit_on_a_page() -> None:
    now = datetime.now(UTC)
    fault = Fault("GW_4XX", "The totals do not add up.", [{"message": "Line 3", "page": 1}, {"message": "Line 4"}])
    jobs = [job(list(Status)[number % len(Status)], error=fault, remaining_seconds=3) for number in range(500)]
    listing = Listing(jobs, None, "", dict.fromkeys(Status, 80), None)
    content = queue(listing, QueueQuery(), now, ENGLISH)
    text = render("convert/queue.html", ENGLISH, page=Frame("/queue", None, "", "/"), queue=content)
    assert text.count('class="job ') == 500

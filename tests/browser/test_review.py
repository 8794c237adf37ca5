"""The review page: where every value came from, and what can be made of it."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import FilePayload, Page, expect

from browser.conftest import OpenPage
from support.invoices import make_invoice, print_invoice
from support.invoices.layouts import REFERENCE
from support.invoices.tamper import unknown_unit, without_buyer_npwp, wrong_amount
from support.patience import eventually
from support.stack import Stack

Reviewed = Callable[..., Awaitable[str]]


def value(page: Page, path: str) -> Any:
    return page.locator(f'[id="v-{path}"]')


def box(page: Page, path: str) -> Any:
    return page.locator(f'[id="b-{path}"]')


async def uploaded(page: Page, content: bytes, status: str = "complete", name: str = "faktur.pdf") -> str:
    """A document that was converted, or could not be."""
    file: FilePayload = {"name": name, "mimeType": "application/pdf", "buffer": content}
    answer = await page.request.post("/api/upload", multipart={"file": file})
    job = str((await answer.json())["job"]["id"])

    async def ended() -> bool:
        found = (await (await page.request.get(f"/api/jobs/{job}")).json())["status"]
        assert found not in {"complete", "failed"} - {status}, found
        return bool(found == status)

    await eventually(ended, within=90, every=0.1, what=f"it is {status}")
    return job


async def in_doubt(page: Page, stack: Stack, content: bytes, name: str = "faktur.pdf") -> str:
    """A document that was converted while a person had to look at nearly everything: all that no check proves."""
    await stack.sql("INSERT INTO review_thresholds (tenant, mapping, below) VALUES ('public', '', 96)")
    try:
        return await uploaded(page, content, "needs_review", name)
    finally:
        await stack.sql("DELETE FROM review_thresholds")


async def in_sight(page: Page, pane: str, element: Any) -> None:
    """Until it is within what a pane shows."""

    async def seen() -> bool:
        outer, inner = await page.locator(pane).bounding_box(), await element.bounding_box()
        return bool(
            outer
            and inner
            and inner["y"] >= outer["y"] - 1
            and inner["y"] + inner["height"] <= outer["y"] + outer["height"] + 1
        )

    await eventually(seen, within=20, every=0.05, what=f"{element} is in sight")


@pytest.fixture
def printed() -> Callable[..., bytes]:
    def make(seed: int, lines: int = 3) -> bytes:
        return print_invoice(make_invoice(seed, lines), REFERENCE)

    return make


async def test_a_value_and_its_place_light_each_other_up(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working)
    job = await uploaded(page, printed(501, 70))
    await page.goto("/queue")
    await page.get_by_role("link", name="Review").click()
    await expect(page).to_have_url(re.compile(f"/review/{job}$"))
    await expect(page.get_by_role("img", name="Page 1 of")).to_have_js_property("complete", True)
    assert await page.get_by_role("img", name="Page 1 of").evaluate("each => each.naturalWidth") > 500

    await page.locator("tbody.later").first.scroll_into_view_if_needed()
    await value(page, "lines.60.amount").scroll_into_view_if_needed()
    await value(page, "lines.60.amount").hover()
    await expect(box(page, "lines.60.amount")).to_have_class(re.compile("lit"))
    await in_sight(page, "#paper", box(page, "lines.60.amount"))
    await page.keyboard.press("Escape")
    await value(page, "number").focus()
    await expect(box(page, "number")).to_have_class(re.compile("lit"))
    await in_sight(page, "#paper", box(page, "number"))
    await expect(box(page, "lines.60.amount")).not_to_have_class(re.compile("lit"))

    await box(page, "lines.5.amount").hover()
    await expect(value(page, "lines.5.amount")).to_have_class(re.compile("lit"))
    await in_sight(page, "#values", value(page, "lines.5.amount"))
    await box(page, "total").click()
    await expect(value(page, "total")).to_be_focused()


async def test_a_correction_is_checked_as_it_is_typed_and_saved_as_a_revision(
    working: Stack, open_page: OpenPage
) -> None:
    page = await open_page(working, expected=("422",))
    invoice = make_invoice(502, 12)
    job = await uploaded(page, print_invoice(unknown_unit(invoice, 7), REFERENCE), "failed")
    await page.goto(f"/review/{job}")
    problem = page.locator("#problems li a").first
    await expect(problem).to_contain_text("line 7")
    await problem.click()
    await expect(value(page, "lines.6.unit")).to_be_focused()
    await in_sight(page, "#paper", box(page, "lines.6.unit"))

    right = invoice.lines[6].unit
    await page.keyboard.press("Enter")
    await expect(page.locator(".typing")).to_be_focused()
    assert await page.locator("datalist option").count() > 5
    await page.locator(".typing").fill("peti kayu")
    await expect(page.locator("#problems")).to_contain_text("peti kayu")
    await page.locator(".typing").fill(right)
    await expect(page.locator("#problems li")).to_have_count(0)
    await page.keyboard.press("Enter")
    await expect(value(page, "lines.6.unit")).to_have_text(re.compile(re.escape(right)))
    await expect(value(page, "lines.6.unit")).to_have_class(re.compile("changed"))

    await page.keyboard.press("Control+s")
    await expect(page.get_by_text("Revision 1").first).to_be_visible()
    await page.get_by_text("1 revision", exact=True).click()
    await expect(page.locator(".history ins").first).to_have_text(right)
    await page.get_by_role("link", name="What changed").click()
    await expect(page.locator(".compared ins").first).to_have_text(right)
    assert (await page.request.get(f"/api/jobs/{job}/download")).ok
    assert (await (await page.request.get(f"/api/jobs/{job}")).json())["status"] == "complete"


async def test_escape_leaves_a_value_as_it_was(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working)
    job = await uploaded(page, printed(503))
    await page.goto(f"/review/{job}")
    before = await value(page, "lines.0.amount").inner_text()
    await value(page, "lines.0.amount").click()
    await value(page, "lines.0.amount").click()
    await page.locator(".typing").fill("1")
    await expect(page.locator("#problems li").first).to_be_visible()
    await page.keyboard.press("Escape")
    await expect(value(page, "lines.0.amount")).to_have_text(before)
    await expect(page.locator("#problems li")).to_have_count(0)
    await expect(page.get_by_role("button", name="Save")).to_be_disabled()


async def test_computed_values_follow(working: Stack, open_page: OpenPage, printed: Callable[..., bytes]) -> None:
    page = await open_page(working)
    job = await uploaded(page, printed(504))
    await page.goto(f"/review/{job}")
    computed = value(page, "seller_tin")
    await value(page, "seller_npwp").focus()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill("0123456789012345")
    await expect(computed).to_have_text(re.compile("^0123456789012345"))
    await page.keyboard.press("Enter")
    await computed.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("status")).to_contain_text("computed from others")


async def test_the_next_doubtful_value_is_one_key(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    wrong = wrong_amount(wrong_amount(make_invoice(505, 12), 3), 9)
    job = await uploaded(page, print_invoice(wrong, REFERENCE), "failed")
    await page.goto(f"/review/{job}")
    await page.keyboard.press("F8")
    first = await page.evaluate("document.activeElement.id")
    await page.keyboard.press("F8")
    second = await page.evaluate("document.activeElement.id")
    assert first != second
    assert await page.evaluate("document.activeElement.classList.contains('doubt')")
    await page.keyboard.press("Shift+F8")
    assert await page.evaluate("document.activeElement.id") == first
    await page.keyboard.press("n")
    assert await page.evaluate("document.activeElement.id") == second


async def test_what_was_not_found_shows_where_it_was_looked_for(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    job = await uploaded(
        page, print_invoice(without_buyer_npwp(make_invoice(506, 3), printed="-"), REFERENCE), "failed"
    )
    await page.goto(f"/review/{job}")
    await expect(page.locator("#problems li").first).to_be_visible()
    await expect(page.locator(".leaf .looked, .leaf .wrong").first).to_be_attached()
    await expect(page.get_by_role("link", name="Download", exact=True)).to_have_count(0)


async def test_what_cannot_be_read_at_all_says_why(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working)
    job = await uploaded(page, b"%PDF-1.7\nnothing of the sort\n%%EOF\n", "failed")
    await page.goto(f"/review/{job}")
    await expect(page.locator(".note.bad")).to_be_visible()


async def test_two_editors_do_not_lose_what_they_typed(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working, expected=("409",))
    job = await uploaded(page, printed(507))
    await page.goto(f"/review/{job}")
    await value(page, "buyer_name").focus()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill("PT Milik Saya")
    await page.keyboard.press("Enter")
    other = {"base": 0, "changes": [{"path": "buyer_name", "value": "PT Orang Lain"}]}
    answer = await page.request.post(f"/api/jobs/{job}/revisions", data=other)
    assert answer.status == 201, await answer.text()
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("#problems .note")).to_contain_text("Revision 1 was saved in the meantime")
    await expect(value(page, "buyer_name")).to_have_text(re.compile("^PT Milik Saya"))
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Revision 2").first).to_be_visible()
    await expect(value(page, "buyer_name")).to_have_text(re.compile("^PT Milik Saya"))


async def test_without_a_script(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working, java_script_enabled=False)
    invoice = make_invoice(508, 5)
    job = await uploaded(page, print_invoice(unknown_unit(invoice, 2), REFERENCE), "failed")
    await page.goto(f"/review/{job}")
    await value(page, "lines.1.unit").click()
    await expect(page).to_have_url(re.compile("#b-lines.1.unit$"))
    await page.get_by_role("link", name="Edit line 2").click()
    units = page.locator('[name="v.lines[1].unit"] option')
    right = next(each for each in await units.all_inner_texts() if each.lower() == invoice.lines[1].unit.lower())
    await page.locator('[name="v.lines[1].unit"]').select_option(right)
    await page.locator("#editing").get_by_role("button", name="Check").click()
    await expect(page.locator("#problems li")).to_have_count(0)
    await expect(value(page, "lines.1.unit")).to_have_text(re.compile(re.escape(right)))
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Revision 1").first).to_be_visible()


async def test_what_is_still_wrong_can_be_accepted(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working, expected=("422",))
    invoice = make_invoice(509, 4)
    job = await uploaded(page, print_invoice(wrong_amount(invoice, 2), REFERENCE), "failed")
    await page.goto(f"/review/{job}")
    await value(page, "buyer_name").focus()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill("PT Lain")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#problems li").first).to_be_visible()
    await page.get_by_role("button", name="Save anyway").click()
    await expect(page.get_by_text("Revision 1").first).to_be_visible()


@pytest.mark.parametrize("hostile", ["<script>window.hit=1</script>", '"><img src=x onerror="window.hit=1">'])
async def test_corrected_values_are_only_text(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes], hostile: str
) -> None:
    page = await open_page(working)
    job = await uploaded(page, printed(510 + len(hostile)))
    await page.goto(f"/review/{job}")
    await value(page, "buyer_name").focus()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill(hostile)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("Revision 1").first).to_be_visible()
    await expect(value(page, "buyer_name")).to_contain_text(hostile)
    await page.get_by_text("1 revision", exact=True).click()
    await expect(page.locator(".history ins").first).to_have_text(hostile)
    assert await page.evaluate("window.hit") is None


async def test_a_long_invoice_scrolls_without_stutter(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working)
    job = await uploaded(page, printed(511, 510))
    await page.goto(f"/review/{job}")
    nodes = await page.evaluate("document.querySelectorAll('*').length")
    assert nodes < 6_000, "lines that nobody looks at are not sent"
    await value(page, "lines.0.amount").scroll_into_view_if_needed()
    # Work of the page's own for each frame; how fast a busy machine paints it is not the page's doing.
    spent = await page.evaluate(
        """async () => {
            const pane = document.getElementById("values"), spent = [];
            for (let step = 0; step < 60; step++) {
                await new Promise(requestAnimationFrame);
                pane.scrollTop += 180;
                const start = performance.now();
                pane.getBoundingClientRect();
                document.elementFromPoint(900, 500);
                spent.push(performance.now() - start);
            }
            return spent.sort((a, b) => a - b);
        }"""
    )
    assert spent[len(spent) // 2] < 16
    assert await page.locator(".lines tbody tr[id]").count() < 510, "nor those that nobody has scrolled to"


async def test_lines_come_when_somebody_goes_there_and_corrections_stay(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working, expected=("422",))
    wrong = wrong_amount(make_invoice(515, 170), 163)
    job = await uploaded(page, print_invoice(wrong, REFERENCE), "failed")
    await page.goto(f"/review/{job}")
    await expect(page.locator("tbody.later")).to_have_count(5)
    await value(page, "lines.2.name").focus()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill("Nama baru")
    await page.keyboard.press("Enter")

    # By a problem's link, by the key for the next doubtful value, and by the arrow keys.
    await page.locator("#problems li").filter(has_text="163").first.locator("a, button").click()
    await expect(page.locator(".v.lit")).to_have_attribute("id", re.compile(r"v-lines\.162\."))
    await expect(box(page, "lines.162.amount")).to_be_attached()
    await page.keyboard.press("F8")
    await value(page, "lines.29.name").focus()
    await page.keyboard.press("ArrowDown")
    await expect(value(page, "lines.30.name")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.locator(".typing").fill("Nama lain")
    await page.keyboard.press("Enter")
    await expect(value(page, "lines.30.name")).to_have_class(re.compile("changed"))
    await expect(value(page, "lines.2.name")).to_have_text(re.compile("^Nama baru"))

    right = "".join(filter(str.isdigit, await value(page, "lines.162.amount").inner_text()))
    assert right
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.locator("#problems li").first).to_be_visible()
    await page.get_by_role("button", name="Save anyway").click()
    await expect(page.get_by_text("Revision 1").first).to_be_visible()
    changed = (await (await page.request.get(f"/api/jobs/{job}/revisions")).json())["revisions"][0]["changes"]
    assert {change["path"]: change["to"] for change in changed} == {
        "lines[2].name": "Nama baru",
        "lines[30].name": "Nama lain",
    }


async def test_without_a_script_lines_are_on_pages_and_corrections_go_along(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working, java_script_enabled=False)
    job = await uploaded(page, printed(516, 120))
    await page.goto(f"/review/{job}")
    await page.get_by_role("link", name="Lines 91 to 120").click()
    await expect(value(page, "lines.0.name")).to_have_count(0)
    await page.get_by_role("link", name="Edit line 110").click()
    await page.locator('[name="v.lines[109].name"]').fill("Satu")
    await page.locator("#editing").get_by_role("button", name="Check").click()
    await expect(page.get_by_role("button", name="Lines 31 to 60")).to_be_visible()
    await page.get_by_role("button", name="Lines 1 to 30").click()
    await page.get_by_role("button", name="Edit line 3", exact=True).click()
    await page.locator('[name="v.lines[2].name"]').fill("Dua")
    await page.locator("#editing").get_by_role("button", name="Check").click()
    await expect(value(page, "lines.2.name")).to_have_text(re.compile("^Dua"))
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Revision 1").first).to_be_visible()
    changed = (await (await page.request.get(f"/api/jobs/{job}/revisions")).json())["revisions"][0]["changes"]
    assert {change["path"]: change["to"] for change in changed} == {"lines[109].name": "Satu", "lines[2].name": "Dua"}


async def test_on_a_phone(working: Stack, open_page: OpenPage, printed: Callable[..., bytes]) -> None:
    page = await open_page(working, viewport={"width": 360, "height": 740}, has_touch=True, is_mobile=True)
    job = await uploaded(page, printed(512, 20))
    await page.goto(f"/review/{job}")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await value(page, "number").tap()
    await in_sight(page, "#paper", box(page, "number"))
    await value(page, "number").tap()
    await expect(page.locator(".typing")).to_be_focused()


async def test_a_result_in_doubt_is_looked_at_and_approved_by_keyboard(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working)
    job = await in_doubt(page, working, printed(530, 70))
    await page.goto("/queue")
    await expect(page.locator(f"#job-{job} .state")).to_have_text("Please check")
    await expect(page.locator("#show-in-doubt")).to_have_text("1 To check")
    await expect(page.get_by_role("link", name="Download", exact=False)).to_have_count(0)
    await page.get_by_role("link", name="Check faktur.pdf").press("Enter")
    await expect(page).to_have_url(re.compile(f"/review/{job}$"))
    doubts = page.get_by_role("region", name=re.compile(r"values are in doubt$"))
    await expect(doubts.get_by_role("listitem")).to_have_count(11)
    await doubts.get_by_role("link", name="Invoice number").press("Enter")
    await expect(value(page, "number")).to_be_focused()
    await expect(box(page, "number")).to_have_class(re.compile("lit"))
    await expect(value(page, "number")).to_have_class(re.compile("doubt"))

    # What is corrected is not in doubt any more, before it is saved.
    await page.keyboard.press("Enter")
    await page.keyboard.type("2508079999")
    await page.keyboard.press("Enter")
    await expect(doubts.get_by_role("link", name="Invoice number")).to_have_count(0)
    await value(page, "number").focus()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Escape")
    await page.get_by_role("button", name="Looks right").press("Enter")
    await expect(page.get_by_role("link", name="Download").first).to_be_visible()
    await expect(doubts).to_have_count(0)
    await page.goto("/queue")
    await expect(page.locator(f"#job-{job} .state")).to_have_text("Ready")
    await expect(page.locator("#show-in-doubt")).to_have_count(0)


async def test_an_open_queue_hears_that_somebody_approved(
    working: Stack, open_page: OpenPage, printed: Callable[..., bytes]
) -> None:
    page = await open_page(working)
    job = await in_doubt(page, working, printed(531))
    await page.goto("/queue")
    await expect(page.locator(f"#job-{job} .state")).to_have_text("Please check")
    answer = await page.request.post(f"/api/jobs/{job}/approve", data={"base": 0})
    assert answer.ok
    await expect(page.locator(f"#job-{job} .state")).to_have_text("Ready")

"""A bookkeeper in Jakarta reads Indonesian, from the first page to the last error; anybody can switch."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.async_api import expect

from browser.conftest import Invoice, OpenPage, Upload
from browser.states import FINDINGS, all_states
from browser.test_review import uploaded
from support import bad_pdfs
from support.stack import Stack
from waybill.web.languages import LANGUAGES, Language, for_scripts
from waybill_documents.messages import DocumentMessage

NOW = datetime(2025, 8, 7, 12, 0, tzinfo=UTC)
JAKARTA = {"locale": "id-ID", "timezone_id": "Asia/Jakarta"}


async def test_uploading_in_indonesian(still: Stack, open_page: OpenPage, invoice: Invoice, tmp_path: Path) -> None:
    page = await open_page(still, **JAKARTA)
    await expect(page.locator("html")).to_have_attribute("lang", "id")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Ubah faktur PDF menjadi XML")
    for name, content in (("catatan.txt", b"x"), ("palsu.pdf", b"bukan PDF"), ("kosong.pdf", b"")):
        (tmp_path / name).write_bytes(content)
    large = tmp_path / "besar.pdf"
    with large.open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    await page.set_input_files("#files", [tmp_path / name for name in ("catatan.txt", "palsu.pdf", "kosong.pdf")])
    await page.set_input_files("#files", [large])
    await expect(page.locator(".why")).to_have_text(
        [
            "Ini bukan berkas PDF, XML, buku kerja, ataupun berkas CSV.",
            "Isi berkas ini tidak sesuai dengan namanya.",
            "Berkas ini kosong.",
            "Berkas ini lebih besar dari 50 MB.",
        ]
    )
    await expect(page.locator(".file .size").last).to_have_text("52,4 MB")
    await page.get_by_role("button", name="Hapus palsu.pdf").click()
    await expect(page.get_by_role("status")).to_have_text("palsu.pdf dihapus dari daftar")
    content = invoice().read_bytes()
    await page.set_input_files("#files", {"name": "lain.pdf", "mimeType": "text/html", "buffer": content})
    await page.set_input_files("#files", {"name": "baik.pdf", "mimeType": "application/pdf", "buffer": content})
    await page.get_by_role("button", name="Konversi 2 berkas").click()
    # The API refused it in English.
    refused = page.locator(".file", has_text="lain.pdf").locator(".why")
    await expect(refused).to_have_text(
        "Berkas ini dikirim sebagai jenis lain daripada namanya. Silakan unggah dokumen aslinya."
    )
    await expect(page.locator("#state")).to_have_text("1 berkas terkirim, 4 tidak dapat dikirim.")
    await page.get_by_role("button", name="Buka antrean").click()
    await expect(page.locator(".job h2")).to_have_text("baik.pdf")


async def test_the_queue_in_indonesian(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still, **JAKARTA)
    ids = await all_states(page, still, upload)
    await page.goto("/queue")
    words = {
        "waiting": "Menunggu",
        "running": "Diproses…",
        "stopping": "Dihentikan…",
        "ready": "Siap",
        "failed": "Gagal",
        "cancelled": "Dibatalkan",
        "expired": "Kedaluwarsa",
    }
    for what, word in words.items():
        await expect(page.locator(f"#job-{ids[what]} .state")).to_have_text(word)
    await expect(page.locator(f"#job-{ids['running']} .going")).to_have_text("Menyimpan hasil")
    await expect(page.locator(f"#job-{ids['retrying']} .going")).to_have_text(
        re.compile("Dicoba lagi dalam [34] menit")
    )
    await expect(page.locator(f"#job-{ids['failed']} .wrong > p")).to_have_text(
        f"{FINDINGS[0]['params']['messages']['id']} (dan 1 temuan lain)"
    )
    await page.locator(f"#job-{ids['failed']}").get_by_text("2 hal perlu diperiksa").click()
    first = page.locator(f"#job-{ids['failed']} li").first
    await expect(first).to_have_text(f"Halaman 7: {FINDINGS[0]['params']['messages']['id']}")
    time = page.locator(f"#job-{ids['waiting']} time")
    await expect(time).to_have_text("baru saja")
    await expect(time).to_have_attribute("title", re.compile(r"^\d+ \w+ \d{4} pukul \d\d\.\d\d\.\d\d$"))
    await still.become(ids["waiting"], "succeeded")
    await expect(page.get_by_role("status")).to_have_text("4 berkas masih diproses, 4 siap, 1 perlu diperiksa, 2 gagal")


async def test_why_the_gateway_refuses_a_document_is_said_in_indonesian(working: Stack, open_page: OpenPage) -> None:
    page = await open_page(working, **JAKARTA)
    job = await uploaded(page, bad_pdfs.encrypted(), "failed", "rahasia.pdf")
    said = DocumentMessage("pdf.encrypted").in_language("id")
    await page.goto("/queue")
    await expect(page.locator(f"#job-{job} .wrong")).to_have_text(said)
    await page.goto(f"/review/{job}")
    await expect(page.locator(".note.bad")).to_have_text(said)


async def test_what_comes_too_late_is_said_in_indonesian(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still, expected=("409", "Response Status Error", "ERR_FAILED", "[object Event]"), **JAKARTA)
    job = await upload(page, "a.pdf")
    await page.route("**/api/stream", lambda route: route.abort())
    await page.goto("/queue")
    await still.become(job, "succeeded")
    await page.get_by_role("button", name="Batalkan a.pdf").click()
    await expect(page.get_by_role("status")).to_have_text(
        "Hanya yang menunggu atau sedang diproses yang dapat dibatalkan; status dokumen ini: Siap."
    )


async def test_problems_and_signing_in_in_indonesian(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, "/no/such/page", expected=("404", "401"), **JAKARTA)
    await expect(page.get_by_role("heading", level=1)).to_have_text("Tidak ditemukan")
    await expect(page.locator("main")).to_contain_text("Yang Anda cari tidak ada di sini.")
    await page.goto("/sign-in")
    await page.get_by_label("Kunci").fill("wb_nonsense")
    await page.get_by_role("button", name="Masuk").click()
    await expect(page.locator(".why")).to_have_text("Ini bukan kunci API yang berlaku.")


async def test_switching_changes_every_open_page(still: Stack, open_page: OpenPage, upload: Upload) -> None:
    page = await open_page(still)
    job = await upload(page, "a.pdf")
    await page.goto("/queue?status=active")
    other = await page.context.new_page()
    await other.goto("/queue?q=a.pdf")
    await other.get_by_role("button", name="Bahasa Indonesia").click()
    await other.wait_for_url("**/queue?q=a.pdf")
    await expect(other.get_by_role("heading", level=1)).to_have_text("Antrean")
    await expect(other.locator("form[action='/language'] [aria-pressed=true]")).to_have_text("Bahasa Indonesia")
    await still.become(job, "running")
    await expect(page.locator("html")).to_have_attribute("lang", "id")
    await expect(page.locator(".state")).to_have_text("Diproses…")
    await expect(page.get_by_role("heading", level=1)).to_have_text("Antrean")
    await page.goto("/")
    await page.get_by_role("button", name="English").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Turn PDF invoices into XML")


async def test_switching_and_working_without_scripts(
    still: Stack, open_page: OpenPage, invoice: Invoice, tmp_path: Path
) -> None:
    page = await open_page(still, "/queue?q=x", java_script_enabled=False, expected=("422",))
    await page.get_by_role("button", name="Bahasa Indonesia").click()
    await page.wait_for_url("**/queue?q=x")
    await expect(page.locator("html")).to_have_attribute("lang", "id")
    await page.get_by_role("link", name="Unggah", exact=True).click()
    (tmp_path / "catatan.txt").write_text("x")
    await page.set_input_files("#files", [invoice("baik.pdf"), tmp_path / "catatan.txt"])
    await page.get_by_role("button", name="Konversi").click()
    await expect(page.get_by_role("alert")).to_contain_text("catatan.txt: Nama berkas ini tidak berakhiran .pdf,")
    await expect(page.get_by_role("alert")).to_contain_text("1 berkas sedang diproses.")
    await page.get_by_role("alert").get_by_role("link", name="Ke antrean").click()
    await expect(page.locator(".state")).to_have_text("Menunggu")
    await page.get_by_role("button", name="English").click()
    await expect(page.locator(".state")).to_have_text("Waiting")


@pytest.mark.parametrize("language", LANGUAGES.values(), ids=LANGUAGES)
async def test_scripts_write_sizes_and_times_as_the_server_does(
    still: Stack, open_page: OpenPage, language: Language
) -> None:
    page = await open_page(still, locale=language.code, timezone_id="UTC")
    sizes = [0, 999, 1000, 48_213, 999_499, 999_500, 52_428_800, 2_500_000_000]
    seconds = [0, 50, 600, 3000, 7200, 86_400, 3 * 86_400, *(month * 30 * 86_400 for month in range(1, 13))]
    written = await page.evaluate(
        """async ([sizes, seconds, now]) => {
            const words = await import(document.querySelector("script[src$='everywhere.js']").src
                .replace("everywhere", "words"));
            const ago = (each) => words.ago(new Date(now - each * 1000), new Date(now));
            return [sizes.map(words.size), seconds.map(ago)];
        }""",
        [sizes, seconds, NOW.timestamp() * 1000],
    )
    assert written == [
        [language.size(number) for number in sizes],
        [language.ago(NOW - timedelta(seconds=each), NOW) for each in seconds],
    ]


async def test_scripts_put_times_and_errors_into_words(still: Stack, open_page: OpenPage) -> None:
    page = await open_page(still, locale="id-ID", timezone_id="UTC")
    error = {"code": "IO_ERROR", "message": "Full.", "key": "storage.full", "params": {}}
    said = await page.evaluate(
        """async ([given, params]) => {
            document.getElementById("words").textContent = given;
            const words = await import(document.querySelector("script[src$='everywhere.js']").src
                .replace("everywhere.js", "words.js?again"));
            return words.t("explain.ended_because.failed", params);
        }""",
        [
            str(for_scripts(LANGUAGES["id"], "explain.ended_because", "errors")),
            {"finished_at": NOW.isoformat(), "code": "IO_ERROR", "error": error},
        ],
    )
    assert said.startswith("Tugas ini gagal secara permanen pada 7 Agustus 2025")
    assert said.endswith("(IO_ERROR): Disk penuh. Kami akan mencoba lagi secara otomatis.")

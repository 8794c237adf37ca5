"""`waybill submit`: documents to a real API, and their results back."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pty
import re
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from support.api_server import Api, Converter, pdf, serving
from support.child_processes import free_port
from support.command_line import EXECUTABLE, Ran, Waybill
from support.patience import eventually
from support.sheets import workbook
from waybill.db import Database
from waybill.errors import GatewayRejected
from waybill.failures import classify
from waybill.storage import LocalStorage
from waybill_convert.doubts import Doubts

XML = b"<TaxInvoiceBulk/>"

Serve = Callable[..., Awaitable[Api]]
Submit = Callable[..., Awaitable[Ran]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "storage"


@pytest.fixture
async def serve(database_url: str, db: Database, folder: Path) -> AsyncIterator[Serve]:
    """Starts an API with settings of its own; in this process, where its log must not get into the command's output."""
    with capture_logs():
        async with AsyncExitStack() as stack:

            async def start(**settings: Any) -> Api:
                given = {"database_url": database_url, "storage_min_free_mb": 0, **settings}
                return await stack.enter_async_context(serving(given, db, folder))

            yield start


@pytest.fixture
async def api(serve: Serve) -> Api:
    return await serve()


@pytest.fixture
async def converter(db: Database, folder: Path) -> AsyncIterator[Converter]:
    async with db.hot() as connection:
        yield await Converter.start(connection, LocalStorage(folder))


@pytest.fixture
def submit(bare: Waybill) -> Submit:
    """Runs `waybill submit` against an API, as a program with a key of its own."""

    async def run(api: Api, *arguments: object) -> Ran:
        return await bare("submit", *arguments, "--url", api.url, WAYBILL_API_KEY=await api.key())

    return run


@pytest.fixture
def invoices(tmp_path: Path) -> list[Path]:
    return [written(tmp_path / f"invoice-{number}.pdf") for number in range(3)]


def written(path: Path, content: bytes | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pdf() if content is None else content)
    return path


@contextlib.asynccontextmanager
async def converting(
    converter: Converter, wrong: str = "", in_doubt: tuple[bytes, Doubts] | None = None
) -> AsyncIterator[None]:
    """Jobs are converted as they come; those of documents that hold these words fail, and one can be in doubt."""

    async def go_on() -> None:
        while True:
            for lease in await converter.take():
                content = await converter.storage.get(lease.payload["upload_key"])
                if wrong and wrong.encode() in content:
                    findings = [{"message": f"line {line}: that is wrong"} for line in range(1, 8)]
                    error = GatewayRejected("It does not add up.", detail={"findings": findings})
                    await converter.fail(lease, classify(error))
                else:
                    doubts = in_doubt[1] if in_doubt is not None and in_doubt[0] == content else None
                    await converter.finish(lease, XML, doubts=doubts)
            await asyncio.sleep(0.01)

    task = asyncio.create_task(go_on())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_the_sample_is_converted_without_a_file_of_ones_own(
    api: Api, submit: Submit, converter: Converter, tmp_path: Path
) -> None:
    async with converting(converter):
        ran = await submit(api, "--sample", "-o", tmp_path / "results")
    assert ran.code == 0
    assert (tmp_path / "results" / "sample-invoice.xml").read_bytes() == XML
    nothing = await submit(api)
    assert (nothing.code, "or --sample" in nothing.err) == (2, True)


def words(ran: Ran) -> list[list[str]]:
    return [line.split() for line in ran.lines]


async def test_files_are_handed_in_and_a_hint_says_how_to_wait(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path]
) -> None:
    ran = await submit(api, *invoices)
    assert ran.code == 0
    assert [line[:2] for line in words(ran)] == [["Waiting", each.name] for each in invoices]
    assert "--wait" in ran.err
    assert [str(lease.id) for lease in await converter.take()] == [line[2] for line in words(ran)]


async def test_results_are_seen_through_and_fetched(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path], tmp_path: Path
) -> None:
    output = tmp_path / "some" / "results"
    async with converting(converter):
        ran = await submit(api, *invoices, "-o", output)
    assert ran.code == 0, ran.err
    assert {line[0] for line in words(ran)} == {"Ready"}
    assert {path.name: path.read_bytes() for path in output.iterdir()} == {
        f"invoice-{number}.xml": XML for number in range(3)
    }
    again = await submit(api, *invoices, "--wait")
    assert again.code == 0
    assert [line[-1] for line in words(again)] == ["reused"] * 3
    assert await converter.take() == []


async def test_a_workbook_needs_a_mapping_that_reads_it(
    serve: Serve, submit: Submit, converter: Converter, tmp_path: Path
) -> None:
    mine = {"format": 1, "name": "mine_v1", "title": "Mine", "xml": {"root": {"name": "TaxInvoiceBulk"}}}
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine_v1.json").write_text(json.dumps(mine))
    api = await serve(mappings_dir=str(tmp_path / "mine"))
    book = workbook(tmp_path / "may.xlsx", {"Blatt 1": [["Summe", 37.05]]})
    table = written(tmp_path / "june.csv", b"Summe;37,05\n")
    refused = await submit(api, book, table, "--mapping", "auto")
    assert refused.code == 1
    assert refused.out.count("Please choose the mapping that reads it") == 2
    async with converting(converter):
        ran = await submit(api, book, table, "--mapping", "mine_v1", "-o", tmp_path / "results")
    assert ran.code == 0, ran.err
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["june.xml", "may.xml"]


async def test_what_may_be_lost_of_an_e_invoice_is_said_with_it(
    api: Api, submit: Submit, invoices: list[Path], converter: Converter
) -> None:
    for loss in ("strict", "lenient"):
        ran = await submit(api, invoices[0], "--mapping", "en16931_ubl", "--loss", loss, "--json")
        assert json.loads(ran.out)[0]["job"]["loss"] == loss
    refused = await submit(api, invoices[0], "--loss", "lenient")
    assert (refused.code, "reads no e-invoices" in refused.err) == (1, True), refused.out
    assert (await submit(api, invoices[0], "--loss", "some")).code == 2


async def test_one_that_fails_is_told_and_makes_the_exit_code_one(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path], tmp_path: Path
) -> None:
    wrong = written(tmp_path / "wrong.pdf", pdf("does not add up"))
    text = written(tmp_path / "notes.pdf", b"hello")
    async with converting(converter, wrong="does not add up"):
        ran = await submit(api, invoices[0], wrong, text, "-o", tmp_path / "results")
    assert ran.code == 1
    assert [line[:2] for line in words(ran) if line[0] in ("Ready", "Failed", "Refused")] == [
        ["Ready", "invoice-0.pdf"],
        ["Failed", "wrong.pdf"],
        ["Refused", "notes.pdf"],
    ]
    assert "line 1: that is wrong" in ran.out
    assert "and 2 more" in ran.out
    assert "not a PDF" in ran.out
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["invoice-0.xml"]


async def test_programs_get_json(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path], tmp_path: Path
) -> None:
    text = written(tmp_path / "notes.pdf", b"hello")
    async with converting(converter):
        ran = await submit(api, invoices[0], text, "-o", tmp_path / "results", "--json")
    assert ran.code == 1
    done, refused = ran.json
    assert done["job"]["status"] == "complete"
    assert (done["file"], done["result"]) == (str(invoices[0]), str(tmp_path / "results" / "invoice-0.xml"))
    assert (refused["job"], refused["result"]) == (None, None)
    assert "not a PDF" in refused["problem"]
    assert ran.err == ""


async def test_documents_of_the_same_name_do_not_overwrite_each_other(
    api: Api, submit: Submit, converter: Converter, tmp_path: Path
) -> None:
    same = [written(tmp_path / name) for name in ("a/invoice.pdf", "b/invoice.pdf", "c/Invoice.PDF", "d/other.pdf")]
    async with converting(converter):
        ran = await submit(api, *same, "-o", tmp_path / "results")
    assert ran.code == 0
    ids = [line[2] for line in words(ran)]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == sorted(
        [f"invoice-{ids[0]}.xml", f"invoice-{ids[1]}.xml", f"Invoice-{ids[2]}.xml", "other.xml"]
    )


async def test_a_file_named_twice_is_one_job(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path]
) -> None:
    async with converting(converter):
        ran = await submit(api, invoices[0], invoices[0], "--wait", "--timeout", "60")
    assert ran.code == 0, ran.err
    first, second = words(ran)
    assert first[:2] == second[:2] == ["Ready", "invoice-0.pdf"]
    assert first[2] == second[2]


async def test_an_api_that_says_too_fast_is_waited_for(
    serve: Serve, submit: Submit, converter: Converter, tmp_path: Path
) -> None:
    api = await serve(api_key_uploads_per_minute=60, api_max_files=1)
    many = [written(tmp_path / f"{number}.pdf") for number in range(2)]
    async with api.context.database.hot() as connection:  # a minute's worth of requests has just been made
        await connection.execute(
            "INSERT INTO rate_limits (subject, tat) VALUES ('upload:tenant:acme', now() + interval '1 minute')"
        )
    ran = await submit(api, *many, "--json")
    assert ran.code == 0, ran.err
    assert len({each["job"]["id"] for each in ran.json}) == 2
    assert "asked us to wait 1 s" in ran.err


async def test_an_api_that_takes_less_at_once_gets_less_at_once(serve: Serve, submit: Submit, tmp_path: Path) -> None:
    api = await serve(api_max_files=2, max_upload_mb=1)
    many = [written(tmp_path / f"{number}.pdf") for number in range(5)]
    large = written(tmp_path / "large.pdf", pdf() + bytes(1024 * 1024))
    ran = await submit(api, *many, large)
    assert ran.code == 1
    assert [line[0] for line in words(ran)][:5] == ["Waiting"] * 5
    assert "larger than 1 MB" in ran.out


async def test_nobody_there(bare: Waybill, invoices: list[Path]) -> None:
    ran = await bare("submit", *invoices, "--url", f"http://127.0.0.1:{free_port()}", WAYBILL_API_KEY="wb_x")
    assert (ran.code, ran.out) == (3, "")
    assert "Is Waybill running there?" in ran.err


async def test_a_key_that_does_not_work_and_none_at_all(api: Api, bare: Waybill, invoices: list[Path]) -> None:
    wrong = await bare("submit", *invoices, "--url", api.url, WAYBILL_API_KEY="wb_wrong")
    assert (wrong.code, wrong.out) == (1, "")
    assert "waybill apikey ls" in wrong.err
    none = await bare("submit", *invoices, "--url", api.url)
    assert none.code == 2
    assert "WAYBILL_API_KEY" in none.err


async def test_an_unknown_mapping_is_refused_before_anything_is_stored(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path]
) -> None:
    ran = await submit(api, *invoices, "--mapping", "no_such_v1")
    assert ran.code == 1
    assert await converter.take() == []


async def test_what_was_handed_in_is_told_though_the_waiting_ended_badly(
    api: Api, submit: Submit, invoices: list[Path]
) -> None:
    ran = await submit(api, *invoices, "--wait", "--timeout", "0.01")
    assert ran.code == 1
    assert [line[0] for line in words(ran)] == ["Waiting"] * 3
    assert "They go on" in ran.err


async def test_a_folder_that_cannot_be_written_to(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path], tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    ran = await submit(api, *invoices, "-o", tmp_path / "file" / "results")
    assert ran.code == 2
    (tmp_path / "results" / "invoice-1.xml" / "full").mkdir(parents=True)  # a folder where a result should go
    async with converting(converter):
        ran = await submit(api, *invoices, "-o", tmp_path / "results")
    assert ran.code == 1
    assert "cannot be written" in ran.out
    assert (tmp_path / "results" / "invoice-2.xml").read_bytes() == XML


async def test_something_else_answers(bare: Waybill, invoices: list[Path]) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"--\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ran = await bare("submit", invoices[0], "--url", url, WAYBILL_API_KEY="wb_x")
    assert ran.code == 1
    assert "is not Waybill" in ran.err


async def test_on_a_terminal_each_file_has_a_bar_and_ctrl_c_tells_what_goes_on(
    api: Api, invoices: list[Path], tmp_path: Path
) -> None:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    environment = {**os.environ, "WAYBILL_API_KEY": await api.key(), "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    process = await asyncio.create_subprocess_exec(
        EXECUTABLE, "submit", *map(str, invoices), "--wait", "--url", api.url,
        env=environment, cwd=tmp_path, stdin=theirs, stdout=asyncio.subprocess.PIPE, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    seen = ""

    async def all_wait() -> bool:
        nonlocal seen
        with contextlib.suppress(BlockingIOError, OSError):
            seen += os.read(ours, 100_000).decode()
        shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
        return all(re.search(rf"{each.name} ━+ Waiting", shown) for each in invoices)

    try:
        await eventually(all_wait, within=60, every=0.05, what="a bar for each file")
        process.send_signal(signal.SIGINT)
        out, _ = await asyncio.wait_for(process.communicate(), 60)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
    assert process.returncode == 130
    assert [line.split()[:2] for line in out.decode().splitlines()] == [["Waiting", each.name] for each in invoices]


async def test_what_a_person_has_to_look_at_is_not_downloaded_and_its_page_is_named(
    api: Api, submit: Submit, converter: Converter, invoices: list[Path], tmp_path: Path
) -> None:
    doubts = Doubts(80, ["number", "net"])
    async with converting(converter, in_doubt=(invoices[1].read_bytes(), doubts)):
        ran = await submit(api, *invoices, "--wait", "-o", tmp_path / "out")
        assert ran.code == 4, ran.err
        assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["invoice-0.xml", "invoice-2.xml"]
        ready, asked, page, _ = ran.out.splitlines()
        assert ready.startswith("Ready        invoice-0.pdf")
        assert asked.startswith("Please check invoice-1.pdf")
        job = asked.split()[-1]
        assert page.strip() == f"2 values are in doubt, so a person has to look first: {api.url}/review/{job}"
        assert ran.err.strip() == "1 of 3 not downloaded: a person has to look at the result first."
        again = await submit(api, invoices[1], "--json", "--wait")
        assert (again.code, again.json[0]["job"]["status"], again.json[0]["reused"]) == (4, "needs_review", True)
        assert (await submit(api, invoices[1])).code == 0, "whoever does not wait has not asked"

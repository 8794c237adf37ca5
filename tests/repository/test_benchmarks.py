"""The benchmark's own tools measure correctly."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import asyncpg
import pytest

from benchmarks import page, wire
from benchmarks.__main__ import MEASUREMENTS
from benchmarks.arena import ContestantFailed
from benchmarks.figures import paired_ratio
from benchmarks.report import Check, Section
from benchmarks.server_log import ServerLog, Statement
from support.patience import eventually
from waybill_cli.local.postgres import EmbeddedPostgres


async def test_the_server_log_counts_every_statement_of_the_watched_database_and_no_other() -> None:
    with EmbeddedPostgres.temporary(settings={"log_line_prefix": "%m [%p] %d "}) as server:
        url = server.create_database("watched")
        admin = await asyncpg.connect(server.url)
        log = ServerLog(server.log)
        await log.watch(admin, "watched")
        connection = await asyncpg.connect(url)
        for number in range(3):
            await connection.fetchval("SELECT $1::int,\n       pg_sleep(0.02)", number)
            await admin.fetchval("SELECT 1")
        await connection.close()
        await admin.close()

        async def sleeps() -> list[Statement]:
            found = [one for one in log.statements("watched") if "pg_sleep" in one.text]
            return found if len(found) == 3 else []

        found = await eventually(sleeps)
    assert {one.text for one in found} == {"SELECT $1::int, pg_sleep(0.02)"}
    assert all(20 <= one.milliseconds < 5000 for one in found)


def test_a_ratio_compares_the_two_of_a_round() -> None:
    # The second round ran on a machine half as fast, and its ratio is the same.
    assert paired_ratio([30.0, 15.0, 33.0], [10.0, 5.0, 10.0]) == pytest.approx(3.0)


async def test_answers_are_read_whole_however_their_length_is_said() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n2\r\ntw\r\n1\r\no\r\n0\r\n\r\n")
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 500 No\r\nContent-Length: 5\r\n\r\nthree")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, wire.connection(server.sockets[0].getsockname()[1]) as connection:
        assert await connection.ask(wire.get("/")) == b"one"
        assert await connection.ask(wire.get("/"), expect=201) == b"two"
        with pytest.raises(ContestantFailed, match="500: three"):
            await connection.ask(wire.get("/"))


def test_peers_run_without_waybill() -> None:
    root = Path(__file__).parents[2] / "benchmarks"
    for path in (root / "program.py", root / "reader_protocol.py", *(root / "peers").glob("*.py")):
        assert "from waybill" not in path.read_text(), path


def test_a_result_is_written_into_its_own_place_of_the_page_and_nowhere_else(tmp_path: Path) -> None:
    there = tmp_path / "page.md"
    there.write_text("# Speed\n\n<!-- one -->\nold\n<!-- end -->\n\n<!-- two -->\nkept\n<!-- end -->\n")
    section = Section("Title", ("", "a|b"), [("row", "1")], checks=[Check.at_least("ratio", 2.0, 1.5)], notes=["so"])
    for _ in range(2):
        page.write(there, {"one": section}, {"one": "idle"})
    text = there.read_text()
    assert "old" not in text
    assert text.count("| row | 1 |") == 1
    assert "|  | a\\|b |\n| --- | ---: |" in text
    assert "| ratio | ≥ 1.50 × | 2.00 × | ✓ |" in text
    assert "*idle*\n<!-- end -->\n\n<!-- two -->\nkept\n<!-- end -->\n" in text
    with pytest.raises(ValueError, match="three"):
        page.write(there, {"three": section}, {"three": "idle"})


def test_the_page_has_a_place_for_every_measurement() -> None:
    text = (Path(__file__).parents[2] / "docs" / "performance.md").read_text()
    assert [name for name in MEASUREMENTS if text.count(f"<!-- {name} -->\n") != 1] == []


def test_importing_the_contestants_program_opens_nothing() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import benchmarks.program"], capture_output=True, text=True, check=True
    )
    assert ran.stderr == ""

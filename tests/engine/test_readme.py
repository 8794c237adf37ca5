"""The engine's README is true: its shop, copied from the page, sends an e-mail through a real worker process."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import asyncpg

from support.child_processes import dying_with_us
from support.patience import eventually

README = Path(__file__).parents[2] / "libs" / "engine" / "README.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README.read_text(), re.MULTILINE | re.DOTALL)


@asynccontextmanager
async def mail_server() -> AsyncIterator[tuple[int, list[str]]]:
    """As much of SMTP as it takes to receive a message: its port, and the messages it received."""
    received: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 ready\r\n")
        while line := (await reader.readline()).decode().upper():
            if line.startswith("DATA"):
                writer.write(b"354 go on\r\n")
                received.append((await reader.readuntil(b"\r\n.\r\n")).decode())
            writer.write(b"221 bye\r\n" if line.startswith("QUIT") else b"250 fine\r\n")
            if line.startswith("QUIT"):
                break
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], received


@contextmanager
def in_background(command: str, folder: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / "worker.log").open("wb") as log:
        process = subprocess.Popen(
            dying_with_us(["sh", "-c", f"exec env {command}"]), cwd=folder, env=environment, stderr=log
        )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        print((folder / "worker.log").read_text())  # pytest shows it when the test failed


async def run(command: str, folder: Path, environment: dict[str, str]) -> None:
    process = await asyncio.create_subprocess_shell(command, cwd=folder, env=environment)
    assert await process.wait() == 0, command


async def test_the_shop_of_the_readme_sends_its_email(empty_database_url: str, tmp_path: Path) -> None:
    for block in blocks("python"):
        name = re.match(r"# (\w+\.py)", block)
        assert name is not None, "every Python block of the README says which file it is"
        (tmp_path / name[1]).write_text(block)
    (shell,) = blocks("sh")
    first, worker, last = shell.splitlines()
    assert worker.endswith(" &")

    async with mail_server() as (port, received):
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "DATABASE_URL": empty_database_url,
            "SMTP_HOST": "127.0.0.1",
            "SMTP_PORT": str(port),
        }
        await run(first, tmp_path, environment)
        with in_background(worker.removesuffix(" &"), tmp_path, environment) as process:
            await run(last, tmp_path, environment)

            async def succeeded() -> bool:
                connection = await asyncpg.connect(empty_database_url)
                try:
                    states = await connection.fetch("SELECT kind, state FROM jobs")
                    return [tuple(row) for row in states] == [("send_email", "succeeded")]
                finally:
                    await connection.close()

            await eventually(succeeded)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.to_thread(process.wait, 30) == 0
    (message,) = received
    assert "To: ada@example.com" in message
    assert "Thank you!" in message


def test_the_example_is_about_twenty_lines_on_each_side() -> None:
    for block in blocks("python"):
        assert len([line for line in block.splitlines() if line.strip()]) <= 20

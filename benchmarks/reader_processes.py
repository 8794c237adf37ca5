"""Processes that read documents on request: ours and the peers', each in its own environment."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.arena import ContestantFailed, stop
from benchmarks.contestants import ROOT
from waybill_cli.local.tether import tethered

OURS = (sys.executable, "-m", "benchmarks.readers")


def theirs(python: Path) -> tuple[str, ...]:
    """The command in the peers' environment."""
    return (str(python), "-m", "benchmarks.peers.readers")


@dataclass(frozen=True)
class Answer:
    milliseconds: list[float]
    found: int
    """How much was read; 0 if the reader could not read the document."""
    before_mb: float
    """Memory of the process before it read the document."""
    peak_mb: float
    """The most memory that the process ever used."""


@dataclass(frozen=True)
class Readers:
    """One process that reads."""

    process: Process
    words: Path

    async def ask(self, reader: str, file: Path, *, mapping: str = "", times: int = 1) -> Answer:
        """Read the file `times` times, one after the other."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        question = {"reader": reader, "file": str(file), "mapping": mapping, "times": times}
        self.process.stdin.write(json.dumps(question).encode() + b"\n")
        line = await self.process.stdout.readline()
        if not line:
            said = self.words.read_text(errors="replace").strip()
            raise ContestantFailed(f"{reader} failed on {file.name}. It said:\n{said[-3000:] or 'nothing'}")
        answer = json.loads(line)
        return Answer(
            [seconds * 1000 for seconds in answer["seconds"]],
            answer["found"],
            answer["before_mb"],
            answer["peak_mb"],
        )


@contextlib.asynccontextmanager
async def readers(command: tuple[str, ...], home: Path) -> AsyncIterator[Readers]:
    """Run such a process until the block ends."""
    said = home / "readers.log"
    with said.open("ab") as words:
        process = await asyncio.create_subprocess_exec(
            *tethered(command, on_parent_death=signal.SIGKILL),
            cwd=home,
            env={"PATH": os.environ.get("PATH", os.defpath), "PYTHONPATH": str(ROOT)},
            stdin=PIPE,
            stdout=PIPE,
            stderr=words,
            start_new_session=True,  # Ctrl-C in a terminal reaches only us, and we stop it
        )
    try:
        yield Readers(process, said)
    finally:
        await stop(process)

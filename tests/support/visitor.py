"""A visitor who asks for some pages again and again, and notes how long each answer takes.

It is a program of its own, because a test that is busy with something else would note how long itself took.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from http.client import HTTPConnection
from time import perf_counter
from urllib.parse import urlsplit

from support.zygote import TESTS

_PAUSE = 0.01


class Visit:
    """What the visitor has noted: for each path how long its answers took, the fastest first. Complete at the end."""

    def __init__(self) -> None:
        self.took: list[list[float]] = []


@asynccontextmanager
async def visiting(url: str, key: str, *paths: str) -> AsyncIterator[Visit]:
    """Have the visitor ask for these paths as long as the block lasts. Every answer must be 200."""
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "support.visitor", url, key, *paths),
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert program.stdout is not None
    assert await program.stdout.readline() == b"all answered\n"
    visit = Visit()
    try:
        yield visit
    finally:
        said, _ = await program.communicate(b"")  # the end of its input ends it
    assert program.returncode == 0
    visit.took = [sorted(each) for each in json.loads(said)]


def _ask(url: str, key: str, path: str, took: list[float], first: threading.Barrier, over: threading.Event) -> None:
    connection = HTTPConnection(urlsplit(url).netloc)
    while not over.wait(_PAUSE):
        begun = perf_counter()
        connection.request("GET", path, headers={"Authorization": f"Bearer {key}"})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            print(f"{path}: {answer.status}", file=sys.stderr, flush=True)
            os._exit(1)  # to leave the thread would not end the program
        took.append(perf_counter() - begun)
        if len(took) == 1:
            first.wait()


def _visit(url: str, key: str, paths: Sequence[str]) -> None:
    took: list[list[float]] = [[] for _ in paths]
    first, over = threading.Barrier(len(paths) + 1), threading.Event()
    threads = [
        threading.Thread(target=_ask, args=(url, key, *each, first, over)) for each in zip(paths, took, strict=True)
    ]
    for thread in threads:
        thread.start()
    first.wait()
    print("all answered", flush=True)
    sys.stdin.read()
    over.set()
    for thread in threads:
        thread.join()
    print(json.dumps([each[1:] for each in took]))  # the first ones opened the connections


if __name__ == "__main__":
    _visit(sys.argv[1], sys.argv[2], sys.argv[3:])

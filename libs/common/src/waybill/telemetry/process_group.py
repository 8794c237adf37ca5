"""Processes of one service that answer together: one has the port, the others each have a Unix socket in one folder.

A process that died leaves its socket, which refuses connections and is removed. One that does not answer in time is
left out and counted, because a scrape that waits for it would show nothing of the others either.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from waybill.telemetry.metrics import PROCESSES_SILENT
from waybill.telemetry.small_server import Headers, Respond, SmallAnswer, SmallServer, listen_at

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

_WITHIN = 2.0
_MOST_BYTES = 16 * 1024 * 1024

Trouble = Callable[[], str | None]
"""What is wrong with a process; None if nothing is."""


def member(folder: Path, name: str, service: str, probes: Mapping[str, Trouble]) -> SmallServer:
    """The server with which a process answers the one that has the port."""

    async def samples(_headers: Headers) -> SmallAnswer:
        from waybill.telemetry import exposition

        return SmallAnswer(exposition.packed(exposition.own_families(service)), "application/json")

    routes = {"/samples": samples, **{path: probe(trouble) for path, trouble in probes.items()}}
    return SmallServer(routes, listen_at(folder / name), f"metrics {name}")


def probe(trouble: Trouble) -> Respond:
    """A route for Kubernetes: 200, or 503 with a reason."""

    async def respond(_headers: Headers) -> SmallAnswer:
        return probe_answer(trouble())

    return respond


def probe_answer(reason: str | None) -> SmallAnswer:
    said = {"status": "ok"} if reason is None else {"status": "unavailable", "reason": reason}
    return SmallAnswer(json.dumps(said).encode(), "application/json", 200 if reason is None else 503)


class ProcessGroup:
    """The other processes, as the one sees them that has the port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def families(self) -> list[tuple[str, list[Family]]]:
        """What each process has counted, by its name."""
        from waybill.telemetry import exposition

        found = []
        for name, answer in (await self._ask("/samples")).items():
            with contextlib.suppress(ValueError):
                if answer is not None and answer[0] == 200:
                    found.append((name, exposition.unpacked(answer[1])))
                    continue
            PROCESSES_SILENT.inc()
        return found

    async def troubles(self, path: str) -> dict[str, str | None]:
        """What each process answers to a probe. Those that run suspects of a crash may die, and are not asked."""
        found: dict[str, str | None] = {}
        for name, answer in (await self._ask(path, lambda name: "-" not in name)).items():
            if answer is None:
                found[name] = "it does not answer"
            elif answer[0] == 200:
                found[name] = None
            else:
                found[name] = _reason(answer[1])
        return found

    async def _ask(
        self, path: str, wanted: Callable[[str], bool] = lambda _: True
    ) -> dict[str, tuple[int, bytes] | None]:
        """The answer of each process that is there; None for one that gave none in time."""
        try:
            sockets = sorted(each for each in self._folder.iterdir() if not each.suffix and wanted(each.name))
        except OSError:
            return {}
        answers = await asyncio.gather(*(_ask_one(each, path) for each in sockets))
        return {each.name: answer[0] for each, answer in zip(sockets, answers, strict=True) if answer}


async def _ask_one(address: Path, path: str) -> list[tuple[int, bytes] | None]:
    """Empty if the process is gone."""
    try:
        async with asyncio.timeout(_WITHIN):
            reader, writer = await asyncio.open_unix_connection(str(address))
            try:
                writer.write(f"GET {path} HTTP/1.1\r\n\r\n".encode())
                return [_parsed(await _read_all(reader))]
            finally:
                writer.close()
    except (ConnectionRefusedError, FileNotFoundError):
        _forget(address)
        return []
    except (OSError, TimeoutError, ValueError):
        return [None]


def _forget(address: Path) -> None:
    with contextlib.suppress(OSError):
        address.unlink()


async def _read_all(reader: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while chunk := await reader.read(65536):
        data += chunk
        if len(data) > _MOST_BYTES:
            raise ValueError("the answer is too long")
    return bytes(data)


def _parsed(data: bytes) -> tuple[int, bytes]:
    head, found, body = data.partition(b"\r\n\r\n")
    if not found:
        raise ValueError("the answer ended early")
    return int(head.split(b" ", 2)[1]), body


def _reason(body: bytes) -> str:
    with contextlib.suppress(ValueError, AttributeError):
        return str(json.loads(body).get("reason", ""))
    return ""

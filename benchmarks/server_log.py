"""Reads the server's statements from its log, with exact counts and with times that exclude the network.

The embedded server has no pg_stat_statements. `log_min_duration_statement = 0`, set on one database, tells the same:
one line when a statement was bound (and planned, if necessary) and one when it was executed. The commit is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from waybill.db.database import Connection

_ENTRY = re.compile(
    r"^\d{4}-\d\d-\d\d \S+ \S+ \[(?P<pid>\d+)\] (?P<database>\S*) LOG:  duration: (?P<ms>[\d.]+) ms"
    r"  (?P<step>parse|bind|execute|statement)[^:]*: ",
)
_NEW = re.compile(r"^\d{4}-\d\d-\d\d \S+ \S+ \[\d+\] ")


@dataclass(frozen=True)
class Statement:
    """One execution of one statement."""

    text: str
    milliseconds: float


class ServerLog:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._start = path.stat().st_size

    @staticmethod
    async def watch(connection: Connection, database: str) -> None:
        """Log every statement of all sessions that begin in this database from now on."""
        for setting in ("log_min_duration_statement = 0", "log_parameter_max_length = 0"):
            await connection.execute(f"ALTER DATABASE {database} SET {setting}")

    def restart(self) -> None:
        """Forget what was logged so far."""
        self._start = self._path.stat().st_size

    def statements(self, database: str) -> list[Statement]:
        """Every statement that was executed in this database since the start, in the order of their ends."""
        found: list[Statement] = []
        waiting: dict[str, float] = {}
        for entry in self._entries():
            match = _ENTRY.match(entry)
            if match is None or match["database"] != database:
                continue
            if match["step"] in ("parse", "bind"):
                waiting[match["pid"]] = waiting.get(match["pid"], 0.0) + float(match["ms"])
            else:
                text = " ".join(entry[match.end() :].split())
                found.append(Statement(text, float(match["ms"]) + waiting.pop(match["pid"], 0.0)))
        return found

    def _entries(self) -> Iterator[str]:
        with self._path.open(errors="replace") as log:
            log.seek(self._start)
            entry = ""
            for line in log:
                if _NEW.match(line):
                    if entry:
                        yield entry
                    entry = line
                else:
                    entry += line
            if entry:
                yield entry

"""The report: a table per measurement, the target beside the measured number, and all of it as JSON."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Check:
    """A target and the number that was measured for it."""

    what: str
    target: str
    measured: str
    value: float
    met: bool

    @classmethod
    def at_least(cls, what: str, value: float, least: float, form: str = "{:.2f} ×") -> Check:
        return cls(what, f"≥ {form.format(least)}", form.format(value), value, value >= least)

    @classmethod
    def at_most(cls, what: str, value: float, most: float, form: str = "{:.2f} ×") -> Check:
        return cls(what, f"≤ {form.format(most)}", form.format(value), value, value <= most)

    @classmethod
    def below(cls, what: str, value: float, bound: float, form: str = "{:.2f} ×") -> Check:
        return cls(what, f"< {form.format(bound)}", form.format(value), value, value < bound)


@dataclass(frozen=True)
class Section:
    """One measurement: a table for people, checks, and the numbers behind both."""

    title: str
    heading: Sequence[str]
    rows: Sequence[Sequence[str]]
    checks: Sequence[Check] = ()
    notes: Sequence[str] = ()
    numbers: Mapping[str, Any] = field(default_factory=dict)


def show(section: Section, console: Console) -> None:
    table = Table(title=section.title, title_justify="left")
    for position, column in enumerate(section.heading):
        table.add_column(column, justify="left" if position == 0 else "right")
    for row in section.rows:
        table.add_row(*row)
    console.print()
    console.print(table)
    if section.checks:
        checks = Table(show_header=True, box=None, padding=(0, 2))
        for column in ("", "target", "measured"):
            checks.add_column(column, justify="right" if column else "left")
        checks.add_column()
        for check in section.checks:
            mark = "[green]✓[/]" if check.met else "[red]✗[/]"
            checks.add_row(check.what, check.target, check.measured, mark)
        console.print(checks)
    for note in section.notes:
        console.print(f"  {note}", style="dim", highlight=False)


def machine(postgres: str) -> dict[str, Any]:
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu_model(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "postgres": postgres,
        "commit": _commit(),
    }


def as_json(section: Section) -> dict[str, Any]:
    return {"checks": [asdict(check) for check in section.checks], **section.numbers}


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _commit() -> str:
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"

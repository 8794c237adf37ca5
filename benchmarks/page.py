"""Writes results into `docs/performance.md`, each between the two marks that name its measurement.

A run that measured only some of them leaves the others as they are, so each result says on which commit, and beside how
much other work, it was measured.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Section


def write(page: Path, sections: Mapping[str, Section], circumstances: Mapping[str, str]) -> None:
    """Replace the results of these measurements. A page without a place for one of them is refused."""
    text = page.read_text()
    for name, section in sections.items():
        text = _replaced(text, name, f"{_as_markdown(section)}\n\n*{circumstances[name]}*")
    page.write_text(text)


def circumstances(facts: Mapping[str, Any], load: tuple[float, float]) -> str:
    """On which machine and commit a measurement was made, and how busy that was before and after it."""
    return (
        f"{facts['cores']} cores ({facts['cpu']}), Python {facts['python']}, Postgres {facts['postgres']}, commit"
        f" {facts['commit']}; load {load[0]:.1f} before and {load[1]:.1f} after, its own work included."
    )


def _replaced(text: str, name: str, result: str) -> str:
    place = re.compile(rf"(<!-- {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
    written, count = place.subn(lambda found: f"{found[1]}{result}\n{found[2]}", text)
    if count != 1:
        raise ValueError(f"the page needs one place for {name!r}: <!-- {name} --> and <!-- end -->")
    return written


def _as_markdown(section: Section) -> str:
    parts = [f"**{section.title}**", _table(section.heading, section.rows)]
    if section.checks:
        checks = [(one.what, one.target, one.measured, "✓" if one.met else "✗") for one in section.checks]
        parts.append(_table(("", "target", "measured", ""), checks))
    parts += [f"- {note}" for note in section.notes]
    return "\n\n".join(parts)


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    line = "| --- |" + " ---: |" * (len(heading) - 1)
    return "\n".join([_row(heading), line, *(_row(row) for row in rows)])


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

"""`make scaling`: runs the simulation of the autoscaler and writes its plots and tables into docs/scaling.md.

The plots are SVG with text, in colours that follow light and dark. The same seed draws the same lines.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from benchmarks.autoscaler import Cpu, Gateway, Hpa, Outcome, Pool, Simulation
from benchmarks.autoscaler_arrivals import BATCH_AT, HOUR, Arrivals, batch, documents, month_end, quiet_day

POLICIES: Mapping[str, Mapping[str, object]] = {
    "time to drain": {},
    "without the 5 min window": {"hpa": Hpa(down_window=0.0)},
    "at most 40 workers": {"pool": Pool(most=40)},
    "CPU, a full worker at 100 %": {"cpu": Cpu()},
    "CPU, a full worker at 30 %": {"cpu": Cpu(full=0.3)},
    "always 10 workers": {"pool": Pool(least=10)},
}
"""The first has the default settings."""

GATEWAYS = (1, 2, 4, 8, 16, 32)
WORKERS = (1, 2, 4, 10)
PARSERS = 2
CAP = 32
"""The defaults: parsing processes of one gateway, and calls of all workers to gateways at once."""

_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP, _GAP = 720.0, 120.0, 56.0, 12.0, 44.0, 34.0

_STYLE = """
svg { color-scheme: light dark; font: 11px system-ui, sans-serif; background: #fff; }
text { fill: #424a53; } .title { font-size: 13px; font-weight: 600; fill: #1f2328; }
.grid { stroke: #d1d9e0; stroke-width: 1; } .line { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.a { stroke: #0969da; } .b { stroke: #bc4c00; } .c { stroke: #1a7f37; } .d { stroke: #8250df; }
@media (prefers-color-scheme: dark) {
svg { background: #0d1117; } text { fill: #9198a1; } .title { fill: #f0f6fc; } .grid { stroke: #3d444d; }
.a { stroke: #4493f8; } .b { stroke: #f0883e; } .c { stroke: #3fb950; } .d { stroke: #ab7df8; }
}
"""


@dataclass(frozen=True)
class Line:
    name: str
    points: Sequence[tuple[float, float]]
    steps: bool = False


@dataclass(frozen=True)
class Panel:
    title: str
    lines: Sequence[Line]


def plot(title: str, panels: Sequence[Panel], x_name: str, x_marks: Sequence[float]) -> str:
    """Panels above each other on one axis. Lines of one name have one colour."""
    names = list(dict.fromkeys(line.name for panel in panels for line in panel.lines))
    first, last = x_marks[0], x_marks[-1]
    height = _TOP + len(panels) * (_PANEL + _GAP) + 8
    inner = _WIDTH - _LEFT - _RIGHT

    def x(value: float) -> float:
        return round(_LEFT + inner * (value - first) / (last - first), 1)

    shapes = [f'<text class="title" x="{_LEFT:g}" y="16">{escape(title)}</text>', *_legend(names)]
    for number, panel in enumerate(panels):
        top = _TOP + number * (_PANEL + _GAP) + 14
        low = top + _PANEL - 14
        most = _round_up(max((y for line in panel.lines for _, y in line.points), default=1.0))
        shapes.append(f'<text x="{_LEFT:g}" y="{top - 5:g}">{escape(panel.title)}</text>')
        for share in (0.0, 0.5, 1.0):
            y = low - (low - top) * share
            shapes.append(f'<path class="grid" d="M{_LEFT:g} {y:g}H{_WIDTH - _RIGHT:g}"/>')
            shapes.append(f'<text x="{_LEFT - 6:g}" y="{y + 4:g}" text-anchor="end">{_number(most * share)}</text>')
        for line in panel.lines:
            colour = "abcd"[names.index(line.name)]
            points = [
                (x(at), round(low - (low - top) * value / most, 1)) for at, value in line.points if first <= at <= last
            ]
            shapes.append(f'<path class="line {colour}" d="{_path(points, steps=line.steps)}"/>')
        if number == len(panels) - 1:
            anchors = ["start", *["middle"] * (len(x_marks) - 2), "end"]
            for mark, anchor in zip(x_marks, anchors, strict=True):
                said = _number(mark) + (f" {x_name}" if mark == last else "")
                shapes.append(f'<text x="{x(mark):g}" y="{low + 16:g}" text-anchor="{anchor}">{escape(said)}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH:g} {height:g}" role="img">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style>\n" + "\n".join(shapes) + "\n</svg>\n"
    )


def _legend(names: Sequence[str]) -> Iterable[str]:
    at = _LEFT
    for name, colour in zip(names, "abcd", strict=False):
        yield f'<path class="line {colour}" d="M{at:g} 30h18"/><text x="{at + 24:g}" y="34">{escape(name)}</text>'
        at += 40 + 6.2 * len(name)


def _path(points: Sequence[tuple[float, float]], *, steps: bool) -> str:
    """A path that leaves out points within a level stretch."""
    said = [f"M{points[0][0]:g} {points[0][1]:g}"] if points else []
    for before, here, after in zip(points, points[1:], [*points[2:], None], strict=False):
        if after is not None and before[1] == here[1] == after[1]:
            continue
        said.append(f"H{here[0]:g}V{here[1]:g}" if steps else f"L{here[0]:g} {here[1]:g}")
    return "".join(said)


def _round_up(number: float) -> float:
    if number <= 0:
        return 1.0
    size = 10.0 ** math.floor(math.log10(number))
    return next(size * step for step in (1, 2, 4, 5, 10) if size * step >= number)


def _number(number: float) -> str:
    return f"{number:,.0f}" if number == int(number) else f"{number:,.1f}"


# What is simulated


def simulate(arrivals: Arrivals, until: float) -> dict[str, Outcome]:
    return {
        name: Simulation(arrivals, until, **settings).run()  # type: ignore[arg-type]
        for name, settings in POLICIES.items()
    }


def drain_of_documents(gateways: int, workers: int) -> float:
    """Seconds until the last of 10,000 documents has been claimed, with so many gateways and workers all the time."""
    pool = Pool(least=workers, most=workers)
    gateway = Gateway(PARSERS * gateways, CAP)
    return Simulation(documents(), HOUR, pool=pool, gateway=gateway).run().drained_after(BATCH_AT)


def lines_of(outcomes: Mapping[str, Outcome], names: Sequence[str]) -> list[Panel]:
    def minutes(name: str, what: str) -> list[tuple[float, float]]:
        return [(moment.at / 60, getattr(moment, what)) for moment in outcomes[name].moments]

    return [
        Panel("jobs waiting", [Line(name, minutes(name, "queued")) for name in names]),
        Panel("workers", [Line(name, minutes(name, "workers"), steps=True) for name in names]),
        Panel("slots in use", [Line(name, minutes(name, "running")) for name in names]),
    ]


def table(outcomes: Mapping[str, Outcome], batch_at: float | None = None) -> list[str]:
    head = [
        "",
        "median wait",
        "95 % wait",
        "longest wait",
        "workers at most",
        "slots paid per slot used",
        "ups after downs",
    ]
    rows = []
    for name, one in outcomes.items():
        row = [
            name,
            *(_seconds(wait) for wait in (one.median_wait, one.slow_wait, max(one.waits))),
            str(one.most_workers),
            f"{one.over_provisioning:.1f}",
            str(one.flaps()),
        ]
        rows.append([*row, _seconds(one.drained_after(batch_at))] if batch_at is not None else row)
    return _markdown([*head, "batch drained after"] if batch_at is not None else head, rows)


def _seconds(seconds: float) -> str:
    return f"{seconds:,.0f} s" if seconds < 600 else f"{seconds / 60:,.0f} min"


def _markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows)]


def results() -> tuple[dict[str, str], dict[str, list[str]]]:
    """The plots by their file's name, and the tables by the name of their place in the page."""
    quiet, ends, large = (
        simulate(quiet_day(), 3 * HOUR),
        simulate(month_end(), 3 * HOUR),
        simulate(batch(), 1.5 * HOUR),
    )
    drains = {
        (gateways, workers): drain_of_documents(gateways, workers) for gateways in GATEWAYS for workers in WORKERS
    }
    ours, cpu, wide = "time to drain", "CPU, a full worker at 100 %", "at most 40 workers"
    plots = {
        "month-end.svg": plot(
            "The end of a month: bursts of some hundred documents",
            lines_of(ends, [ours, cpu]),
            "min",
            [0, 45, 90, 135, 180],
        ),
        "batch.svg": plot(
            "10,000 files at once, ten minutes after the start",
            lines_of(large, [ours, wide, cpu]),
            "min",
            [5, 10, 15, 20, 25, 30],
        ),
    }
    by_gateways = _markdown(
        ["gateways", *(f"{workers} worker{'s' if workers > 1 else ''}" for workers in WORKERS)],
        [[str(gateways), *(_seconds(drains[gateways, workers]) for workers in WORKERS)] for gateways in GATEWAYS],
    )
    return plots, {
        "quiet": table(quiet),
        "month-end": table(ends),
        "batch": table(large, BATCH_AT),
        "gateways": by_gateways,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Simulates the autoscaler and draws what happens.")
    parser.add_argument("--page", type=Path, required=True, help="the page whose tables are replaced")
    page: Path = parser.parse_args().page
    plots, tables = results()
    folder = page.with_suffix("")
    folder.mkdir(exist_ok=True)
    for name, drawn in plots.items():
        (folder / name).write_text(drawn)
    text = page.read_text()
    for name, lines in tables.items():
        place = re.compile(rf"(<!-- simulated: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not place.search(text):
            raise SystemExit(f"{page} has no place for the table {name}.")
        text = place.sub(lambda found, lines=lines: found[1] + "\n".join(lines) + "\n" + found[2], text)  # type: ignore[misc]
    page.write_text(text)


if __name__ == "__main__":
    main()

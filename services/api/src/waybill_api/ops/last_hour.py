"""The last hour: three plots, each with the table behind it, and what each kind got done."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from markupsafe import Markup

from waybill.web.languages import Language
from waybill_api.ops import plots
from waybill_api.ops.durations import duration
from waybill_api.ops.facts import HOUR, Facts
from waybill_api.ops.plots import Point
from waybill_engine.samples import Depth

Number = TypeVar("Number", int, float)

_MINUTES = 60
_ROW = timedelta(minutes=5)
"""What a row of a table sums up."""

_OUTCOMES = ("succeeded", "failed", "cancelled")
"""How ends are drawn; dead letters are failures here."""


@dataclass(frozen=True, slots=True)
class Legend:
    layer: str
    name: str
    value: str


@dataclass(frozen=True, slots=True)
class Plot:
    name: str
    title: str
    svg: Markup
    top: str
    half: str
    """What the edges of the drawing mean."""
    legend: Sequence[Legend]
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    """The table behind it, the newest first."""


@dataclass(slots=True)
class Done:
    """What one kind got done in the last hour."""

    jobs: int = 0
    failed: int = 0
    seconds_queued: float = 0.0
    seconds_running: float = 0.0


def done_by_kind(facts: Facts) -> dict[str, Done]:
    found: dict[str, Done] = defaultdict(Done)
    for one in facts.finished_kinds:
        done = found[one.kind]
        done.jobs += one.jobs
        done.failed += one.jobs if one.outcome in ("failed", "dead_letter") else 0
        done.seconds_queued += one.seconds_queued
        done.seconds_running += one.seconds_running
    return dict(found)


def hour(facts: Facts, language: Language) -> list[Plot]:
    return [_depth(facts, language), _throughput(facts, language), _waiting(facts, language)]


def _depth(facts: Facts, language: Language) -> Plot:
    number, begin = language.number, facts.now - HOUR
    points = [Point(_place(one.at, begin), (one.running, one.queued)) for one in facts.depths]
    last = facts.depths[-1] if facts.depths else Depth(facts.now, 0, 0, 0, 0)
    most = max((one.queued + one.running for one in facts.depths), default=0)
    title = language.say(
        "ops.plot.depth_says", queued=number(last.queued), running=number(last.running), most=number(most)
    )
    drawing = plots.areas(("running", "queued"), points, title)
    newest = {_row_of(one.at): one for one in facts.depths}  # of each row, the last sample
    rows = [(_clock(at), number(one.queued), number(one.running), number(one.scheduled)) for at, one in newest.items()]
    return Plot(
        "depth",
        language.say("ops.plot.depth"),
        drawing.svg,
        *_edges(drawing.top, number),
        legend=[
            Legend("queued", language.say("ops.counts.queued"), number(last.queued)),
            Legend("running", language.say("ops.counts.running"), number(last.running)),
        ],
        heads=[language.say(f"ops.{key}") for key in ("time", "counts.queued", "counts.running", "counts.scheduled")],
        rows=rows[::-1],
    )


def _throughput(facts: Facts, language: Language) -> Plot:
    number, begin = language.number, facts.now - HOUR
    minutes: dict[datetime, list[int]] = defaultdict(lambda: [0, 0, 0])
    for at, one in facts.finished:
        outcome = "failed" if one.outcome == "dead_letter" else one.outcome
        minutes[at][_OUTCOMES.index(outcome)] += one.jobs
    points = [Point(_place(at, begin), counts, _hint(at, counts, language)) for at, counts in sorted(minutes.items())]
    sums = [sum(counts[layer] for counts in minutes.values()) for layer in range(len(_OUTCOMES))]
    title = language.say("ops.plot.throughput_says", jobs=number(sum(sums)), failed=number(sums[1]))
    drawing = plots.bars(_OUTCOMES, points, 1 / _MINUTES, title)
    return Plot(
        "throughput",
        language.say("ops.plot.throughput"),
        drawing.svg,
        *_edges(drawing.top, number),
        legend=[
            Legend(name, language.say(f"ops.states.{name}"), number(total))
            for name, total in zip(_OUTCOMES, sums, strict=True)
            if total or name != "cancelled"
        ],
        heads=[language.say("ops.time"), *(language.say(f"ops.states.{name}") for name in _OUTCOMES)],
        rows=[(_clock(at), *map(number, counts)) for at, counts in _rows(minutes)],
    )


def _waiting(facts: Facts, language: Language) -> Plot:
    begin = facts.now - HOUR
    minutes: dict[datetime, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for at, one in facts.finished:
        minutes[at] = _added(minutes[at], (one.jobs, one.seconds_queued, one.seconds_running))
    points = [Point(_place(at, begin), (waited / jobs,)) for at, (jobs, waited, _) in sorted(minutes.items())]
    jobs, queued, running = (sum(sums[part] for sums in minutes.values()) for part in range(3))
    average, ran = (duration(total / jobs, language) if jobs else "–" for total in (queued, running))
    title = language.say("ops.plot.waits_says", waited=average, ran=ran)
    drawing = plots.line("queued", points, title)
    return Plot(
        "waits",
        language.say("ops.plot.waits"),
        drawing.svg,
        *_edges(drawing.top, lambda seconds: duration(seconds, language)),
        legend=[
            Legend("queued", language.say("ops.plot.waited"), average),
            Legend("ran", language.say("ops.plot.ran"), ran),
        ],
        heads=[language.say("ops.time"), language.say("ops.plot.waited"), language.say("ops.plot.ran")],
        rows=[
            (_clock(at), duration(waited / count, language), duration(ran_for / count, language))
            for at, (count, waited, ran_for) in _rows(minutes)
        ],
    )


def _edges(top: float, say: Callable[[float], str]) -> tuple[str, str]:
    half = top / 2
    return say(int(top) if top == int(top) else top), "" if half < 1 else say(int(half) if half == int(half) else half)


def _rows(minutes: Mapping[datetime, Sequence[Number]]) -> list[tuple[datetime, list[Number]]]:
    """Minutes summed up to the rows of a table, the newest first."""
    rows: dict[datetime, list[Number]] = {}
    for at, counts in sorted(minutes.items()):
        row = _row_of(at)
        rows[row] = _added(rows[row], counts) if row in rows else list(counts)
    return list(rows.items())[::-1]


def _added(old: Sequence[Number], new: Sequence[Number]) -> list[Number]:
    return [one + more for one, more in zip(old, new, strict=True)]


def _place(at: datetime, begin: datetime) -> float:
    return (at - begin) / HOUR


def _row_of(at: datetime) -> datetime:
    return datetime.fromtimestamp(at.timestamp() // _ROW.total_seconds() * _ROW.total_seconds(), UTC)


def _clock(at: datetime) -> str:
    return f"{at:%H:%M}"


def _hint(at: datetime, counts: Sequence[int], language: Language) -> str:
    parts = [
        f"{language.say(f'ops.states.{name}')} {language.number(count)}"
        for name, count in zip(_OUTCOMES, counts, strict=True)
        if count
    ]
    return f"{_clock(at)} UTC · {', '.join(parts)}"

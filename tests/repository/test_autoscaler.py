"""What docs/scaling.md says about the autoscaler holds in the simulation, and its formula is the database's."""

from __future__ import annotations

import math
import re
from functools import cache
from itertools import product
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from benchmarks.autoscaler import Cpu, Hpa, Outcome, Pool, Simulation, slots_wanted, workers_wanted
from benchmarks.autoscaler_arrivals import BATCH, BATCH_AT, HOUR, batch, month_end, quiet_day
from benchmarks.autoscaler_plots import CAP, Line, Panel, drain_of_documents, plot
from support.engine import Connect
from waybill_convert.settings import ConvertSettings
from waybill_engine.backlog import DRAIN_TARGET, read_backlog

ROOT = Path(__file__).resolve().parents[2]


@cache
def month_ends(how: str) -> Outcome:
    settings = {"drain": {}, "no window": {"hpa": Hpa(down_window=0.0)}, "cpu": {"cpu": Cpu()}}[how]
    return Simulation(month_end(), 3 * HOUR, **settings).run()  # type: ignore[arg-type]


@cache
def batches(how: str) -> Outcome:
    settings = {"drain": {}, "wide": {"pool": Pool(most=40)}, "cpu": {"cpu": Cpu()}, "idle": {"cpu": Cpu(full=0.3)}}[
        how
    ]
    return Simulation(batch(), 1.5 * HOUR, **settings).run()  # type: ignore[arg-type]


def test_the_end_of_a_month_keeps_nobody_waiting_longer_than_the_drain_target() -> None:
    assert max(month_ends("drain").waits) < DRAIN_TARGET
    assert month_ends("drain").slow_wait < 0.6 * month_ends("cpu").slow_wait
    assert max(month_ends("cpu").waits) > DRAIN_TARGET


def test_a_batch_is_drained_sooner_than_by_processor_time() -> None:
    ours, wide, cpu, idle = (batches(how).drained_after(BATCH_AT) for how in ("drain", "wide", "cpu", "idle"))
    assert wide < ours < 300.0 < cpu < idle
    assert wide < 2.5 * DRAIN_TARGET
    assert batches("idle").most_workers == 1, "workers that wait look idle"
    assert len(batches("drain").waits) > BATCH


def test_the_window_on_the_way_down_trades_slots_for_calm() -> None:
    assert month_ends("no window").flaps() > 2 * month_ends("drain").flaps()
    assert month_ends("no window").over_provisioning < 0.5 * month_ends("drain").over_provisioning


def test_on_a_quiet_day_workers_come_and_go_between_one_and_two() -> None:
    outcome = Simulation(quiet_day(), 3 * HOUR).run()
    assert outcome.most_workers == 2
    assert outcome.slow_wait < 1.0


def test_more_workers_alone_do_not_drain_convert() -> None:
    one_gateway = {workers: drain_of_documents(1, workers) for workers in (1, 10)}
    assert one_gateway[10] == pytest.approx(one_gateway[1], rel=0.02)
    assert drain_of_documents(4, 2) == pytest.approx(one_gateway[1] / 4, rel=0.02)
    assert ConvertSettings.model_fields["gateway_calls"].default == CAP


def test_the_same_seed_gives_the_same_day() -> None:
    first, second = (Simulation(batch(), HOUR, seed=3).run() for _ in range(2))
    assert first.moments == second.moments
    assert first.waits == second.waits


def test_every_slot_that_is_used_is_provided() -> None:
    for outcome in (month_ends("drain"), batches("wide"), batches("cpu")):
        assert outcome.provided > outcome.used > 0
        assert all(moment.running <= 40 * Pool().slots for moment in outcome.moments)


async def test_the_formula_is_the_databases(connect: Connect) -> None:
    hot = await connect()
    for queued, seconds, cap, slots in product((0, 7, 600), (0.05, 2.0, 30.0), (None, 16), (1, 10)):
        await hot.execute("TRUNCATE jobs, caps, finished_by_minute")
        await hot.execute(
            "INSERT INTO jobs (id, tenant, owner, kind, queue, state, payload, time_limit)"
            " SELECT gen_random_uuid(), 'acme', 'acme', 'work', 'default', 'queued', '{}', 60"
            " FROM generate_series(1, $1::int)",
            queued,
        )
        await hot.execute(
            "INSERT INTO finished_by_minute VALUES (now(), 'work', 'succeeded', 100, 0, $1)", seconds * 100
        )
        if cap is not None:
            await hot.execute("INSERT INTO caps (kind, most) VALUES ('work', $1)", cap)
        ours = slots_wanted(queued, 0, seconds, DRAIN_TARGET, math.inf if cap is None else cap)
        assert (await read_backlog(hot, slots=slots)).wanted == workers_wanted(ours, slots)


def test_the_pages_plots_are_there_and_can_be_read_in_light_and_dark() -> None:
    page = (ROOT / "docs/scaling.md").read_text()
    named = re.findall(r"!\[[^]]+\]\((scaling/[^)]+\.svg)\)", page)
    assert sorted(path.name for path in (ROOT / "docs/scaling").iterdir()) == sorted(Path(one).name for one in named)
    for one in named:
        text = (ROOT / "docs" / one).read_text()
        assert ET.fromstring(text).tag.endswith("svg")  # noqa: S314 - ours
        assert "prefers-color-scheme: dark" in text
    assert len(re.findall(r"<!-- simulated: [a-z-]+ -->\n\|", page)) == 4


def test_a_plot_escapes_its_words_and_draws_every_line() -> None:
    lines = [Line("a < b", [(0.0, 1.0), (5.0, 4.0)]), Line("c", [(0.0, 0.0), (5.0, 0.0)], steps=True)]
    drawn = ET.fromstring(plot("T & Q", [Panel("p", lines)], "min", [0, 5]))  # noqa: S314
    words = ["".join(text.itertext()) for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert "T & Q" in words
    assert "a < b" in words
    assert len([one for one in drawn.iter() if str(one.get("class")).startswith("line")]) == 4

"""The contestants, their settings, and the SQL that counts their committed completions from outside.

The benchmark tries each of a peer's settings below before the measured rounds and keeps the fastest. Waybill always
runs with its defaults.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

Settings = Mapping[str, Any]

ROOT = Path(__file__).resolve().parents[1]
_GRAPHILE = ROOT / "benchmarks" / "peers"


@dataclass(frozen=True)
class Contestant:
    name: str
    slug: str
    """The prefix of its databases' names."""
    program: tuple[str, ...]
    """The command that understands the verbs of `program`."""
    nth: str
    """SQL that returns the id, as text, of the $1-th job in the order of claiming."""
    claimed: str
    """SQL that tells whether the job with the id $1 has been claimed."""
    done: str
    """SQL that tells whether the job $1 is done. By primary key, so frequent calls cost the contestant nothing."""
    left: str
    """SQL that counts the jobs that are not done."""
    choices: tuple[Settings, ...] = ({},)
    """Settings to try for draining."""
    pick_up_choices: tuple[Settings, ...] = ({},)
    """Settings to try for picking up."""
    share: float = 1.0
    """The share of the jobs that it gets, so that a slow contestant does not take minutes."""
    work: tuple[str, ...] = ()
    """The command that runs a worker, if it is not the program's verb `work`."""
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def worker(self) -> tuple[str, ...]:
        return self.work or (*self.program, "work")


WAYBILL = Contestant(
    name="Waybill",
    slug="waybill",
    program=(sys.executable, "-m", "benchmarks.ours"),
    work=(sys.executable, "-m", "waybill_worker"),
    environment={"WAYBILL_WORKER_HANDLERS": "benchmarks.handlers"},
    nth="SELECT id::text FROM jobs ORDER BY id OFFSET $1 LIMIT 1",
    claimed="SELECT state <> 'queued' FROM jobs WHERE id = $1::text::uuid",
    done="SELECT state = 'succeeded' FROM jobs WHERE id = $1::text::uuid",
    left="SELECT count(*) FROM jobs WHERE state <> 'succeeded'",
)

WAYBILL_TIMES_FOUR = replace(
    WAYBILL,
    name="Waybill, four processes",
    environment={**WAYBILL.environment, "WAYBILL_WORKER_PROCESSES": "4"},
)

WAYBILL_IDLE = replace(WAYBILL, name="Waybill, idle", environment={})
"""A worker with the handlers that it ships, as in production."""

FLOOR = Contestant(
    name="bare SQL loop",
    slug="floor",
    program=(sys.executable, "-m", "benchmarks.floor"),
    nth="SELECT id::text FROM floor_jobs ORDER BY id OFFSET $1 LIMIT 1",
    claimed="SELECT state <> 0 FROM floor_jobs WHERE id = $1::text::bigint",
    done="SELECT state = 2 FROM floor_jobs WHERE id = $1::text::bigint",
    left="SELECT count(*) FROM floor_jobs WHERE state <> 2",
    choices=({"batch": 250}, {"batch": 500}, {"batch": 1000}, {"batch": 2000}),
    pick_up_choices=({"batch": 1},),
)

# Batches above 1,000 gain little. A pool lets it dequeue while it writes; one connection avoids switching.
_PGQUEUER = Contestant(
    name="PGQueuer",
    slug="pgqueuer",
    program=("-m", "benchmarks.peers.pgqueuer"),
    nth="SELECT id::text FROM pgqueuer ORDER BY id OFFSET $1 LIMIT 1",
    claimed="SELECT NOT EXISTS (SELECT FROM pgqueuer WHERE id = $1::text::bigint AND status = 'queued')",
    done="SELECT NOT EXISTS (SELECT FROM pgqueuer WHERE id = $1::text::bigint)",
    left="SELECT count(*) FROM pgqueuer",
    choices=(
        {"batch_size": 500, "pool": False},
        {"batch_size": 1000, "pool": False},
        {"batch_size": 1000, "pool": True},
        {"batch_size": 2000, "pool": True},
    ),
    pick_up_choices=({"batch_size": 10, "pool": False}, {"batch_size": 10, "pool": True}),
)

_PROCRASTINATE = Contestant(
    name="Procrastinate",
    slug="procrastinate",
    program=("-m", "benchmarks.peers.procrastinate"),
    nth="SELECT id::text FROM procrastinate_jobs ORDER BY id OFFSET $1 LIMIT 1",
    claimed="SELECT status <> 'todo' FROM procrastinate_jobs WHERE id = $1::text::bigint",
    done="SELECT status = 'succeeded' FROM procrastinate_jobs WHERE id = $1::text::bigint",
    left="SELECT count(*) FROM procrastinate_jobs WHERE status <> 'succeeded'",
    choices=({"concurrency": 1}, {"concurrency": 10}, {"concurrency": 30}),
    pick_up_choices=({"concurrency": 1}, {"concurrency": 10}),
    share=0.02,
)


def _graphile_settings(concurrent: int, local: int, delay: int) -> Settings:
    return {
        "concurrentJobs": concurrent,
        "maxPoolSize": max(10, concurrent + 2),
        "localQueue": {"size": local},
        "completeJobBatchDelay": delay,
        "failJobBatchDelay": delay,
    }


# 24 / 500 / 0 is what its performance page reports its best figures for.
_GRAPHILE_WORKER = Contestant(
    name="graphile-worker",
    slug="graphile",
    program=(str(_GRAPHILE / "graphile.mjs"),),
    nth="SELECT id::text FROM graphile_worker._private_jobs ORDER BY priority, run_at, id OFFSET $1 LIMIT 1",
    claimed="""
    SELECT NOT EXISTS (SELECT FROM graphile_worker._private_jobs WHERE id = $1::text::bigint AND locked_at IS NULL)
    """,
    done="SELECT NOT EXISTS (SELECT FROM graphile_worker._private_jobs WHERE id = $1::text::bigint)",
    left="SELECT count(*) FROM graphile_worker._private_jobs",
    choices=(
        _graphile_settings(24, 500, 0),
        _graphile_settings(24, 1000, 0),
        _graphile_settings(100, 1000, 0),
        _graphile_settings(100, 2000, 5),
    ),
    pick_up_choices=({"concurrentJobs": 1, "maxPoolSize": 10}, _graphile_settings(10, 11, 0)),
)


def shown(settings: Settings) -> str:
    """The settings in a short readable form."""
    return " ".join(_words(settings)) or "defaults"


def _words(settings: Settings) -> list[str]:
    found: list[str] = []
    for name, value in settings.items():
        found += [f"{name}.{word}" for word in _words(value)] if isinstance(value, Mapping) else [f"{name}={value}"]
    return found


def interpreter(environment: Path | None) -> Path | None:
    """The interpreter of the environment that the Python peers are installed in."""
    python = environment and environment.absolute() / "bin" / "python"
    return python if python and python.exists() else None


def peers(environment: Path | None) -> tuple[list[Contestant], list[str]]:
    """The peers that are installed, and a sentence about each that is not."""
    found: list[Contestant] = []
    absent: list[str] = []
    python = interpreter(environment)
    if python is not None:
        found += [replace(one, program=(str(python), *one.program)) for one in (_PGQUEUER, _PROCRASTINATE)]
    else:
        absent.append("PGQueuer and Procrastinate are not installed; `make bench` installs them.")
    node = shutil.which("node")
    if node is None:
        absent.append("graphile-worker is left out: there is no node on this machine.")
    elif not (_GRAPHILE / "node_modules" / "graphile-worker").exists():
        absent.append("graphile-worker is left out: `npm ci` in benchmarks/peers did not run.")
    else:
        found.append(replace(_GRAPHILE_WORKER, program=(node, *_GRAPHILE_WORKER.program)))
    return found, absent

"""The command tree is composed of the platform's commands and those that the installed pipelines bring."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

from support.command_line import Waybill
from waybill.pipelines import Pipeline, installed
from waybill_cli import group
from waybill_cli.group import commands


@pytest.fixture
def brought(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One more pipeline, with a command of its own and one whose name is taken."""
    mine = Pipeline("mine", commands={"hello": "platform:node", "jobs": "no.such:module"})
    monkeypatch.setattr(group, "installed", lambda: (*installed(), mine))
    commands.cache_clear()
    yield
    monkeypatch.undo()
    commands.cache_clear()


def test_every_command_of_every_pipeline_is_there_after_up_and_before_the_platform_s() -> None:
    pipelines = [name for pipeline in installed() for name in pipeline.commands]
    assert {"submit", "mapping"} <= set(pipelines)
    assert list(commands())[: len(pipelines) + 2] == ["up", *pipelines, "jobs"]


@pytest.mark.usefixtures("brought")
def test_a_pipeline_adds_a_command_but_replaces_none_of_ours() -> None:
    assert commands()["hello"] == "platform:node"
    assert commands()["jobs"] == "waybill_cli.jobs:app"


async def test_a_command_that_is_not_there_is_answered_with_the_nearest_that_is(bare: Waybill) -> None:
    ran = await bare("submitt")
    assert (ran.code, ran.out) == (2, "")
    assert "submit" in ran.err


def test_a_command_does_not_load_what_only_others_need() -> None:
    # `version` needs no database and no pipeline; a pipeline's `pipeline.py` is all of it that may be imported.
    program = (
        "import sys; from waybill_cli.main import app\n"
        "try: app(['version'])\n"
        "except SystemExit: pass\n"
        "heavy = ('waybill_convert', 'waybill_engine', 'asyncpg')\n"
        "print(sorted(name for name in sys.modules if name.startswith(heavy)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines()[1] == "['waybill_convert', 'waybill_convert.pipeline']"

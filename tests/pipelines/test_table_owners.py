"""SQL that changes or locks a table stands with the table's owner: no pipeline does that to the engine's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waybill_engine import models

PIPELINES = Path(__file__).parents[2] / "pipelines"
TABLES = sorted(
    model.__tablename__
    for model in vars(models).values()
    if isinstance(model, type) and model.__module__ == models.__name__ and hasattr(model, "__tablename__")
)
_NAMES = "|".join(TABLES)
CHANGES = re.compile(rf"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|TRUNCATE|LOCK\s+TABLE)\s+(?:{_NAMES})\b")
LOCKS = re.compile(rf"\bFROM\s+(?:{_NAMES})\b[^;\"]*?\bFOR\s+(?:NO\s+KEY\s+)?(?:UPDATE|KEY\s+SHARE|SHARE)\b")


def offences(text: str) -> list[str]:
    return [found[0] for rule in (CHANGES, LOCKS) for found in rule.finditer(text)]


@pytest.mark.parametrize("pipeline", sorted(path.name for path in PIPELINES.iterdir() if path.is_dir()))
def test_a_pipeline_neither_changes_nor_locks_the_engines_rows(pipeline: str) -> None:
    sources = sorted((PIPELINES / pipeline / "src").rglob("*.py"))
    assert sources
    found = {path.name: offences(path.read_text()) for path in sources}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE jobs SET owner = $2",
        "INSERT INTO job_events (job_id) VALUES ($1)",
        "DELETE\n  FROM job_artefacts",
        "SELECT id FROM jobs\n WHERE id = $1\n   FOR UPDATE",
        "SELECT id FROM jobs WHERE id = $1 FOR SHARE",
    ],
)
def test_such_a_statement_is_noticed(statement: str) -> None:
    assert offences(f'_SQL = """\n{statement}\n"""') != []


def test_reading_them_is_not() -> None:
    assert {"jobs", "job_events", "job_artefacts"} <= set(TABLES)
    assert offences("SELECT state FROM conversions JOIN jobs ON jobs.id = job_id") == []
    assert offences("AFTER UPDATE OF state ON jobs FOR EACH ROW") == []

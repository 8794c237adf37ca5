"""Statements name the columns they read. A release that adds one must not change the results of the release before it.

Postgres refuses a prepared statement whose result has changed, so a `SELECT *` ends the transactions of older programs
the moment a newer one migrates.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from sqlmodel import SQLModel

from waybill.db.branches import import_models

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path
    for folder in ("libs", "pipelines", "services", "cli")
    for path in (ROOT / folder).glob("**/src/**/*.py")
    if "migrations" not in path.parts
)

# A star with nothing before it to multiply. What a function in FROM returns is named in the statement itself.
STAR = re.compile(r"(?:\b(?:SELECT|RETURNING|DISTINCT|ALL)|,)\s*\*(?!\s+FROM\s+unnest\()")
STAR_OF = re.compile(r"\b(\w+)\.\*")


def everything_of_a_table(statement: str, tables: set[str]) -> list[str]:
    """The parts of a statement that read whatever columns a table has."""
    if not re.search(r"\b(SELECT|RETURNING)\b", statement):
        return []
    found = STAR.findall(statement)
    for name in STAR_OF.findall(statement):
        named = re.search(rf"\b(?:FROM|JOIN|INTO|UPDATE|USING|,)\s+(\w+)\s+(?:AS\s+)?{name}\b", statement)
        if name in tables or (named and named[1] in tables):
            found.append(f"{name}.*")
    return found


def texts(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "x" for part in node.values]
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def test_no_statement_reads_whatever_columns_a_table_has() -> None:
    import_models()
    tables = set(SQLModel.metadata.tables)
    assert {"jobs", "schedules", "conversions"} <= tables
    refused = [
        f"{path.relative_to(ROOT)}:{line}: {' '.join(found)}"
        for path in SOURCES
        for line, text in texts(path)
        if (found := everything_of_a_table(text, tables))
    ]
    assert refused == [], "name the columns instead"


def test_what_is_refused_and_what_is_not() -> None:
    tables = {"jobs"}
    for refused in (
        "SELECT * FROM jobs",
        "SELECT now() AS now, * FROM jobs",
        "SELECT *, now() FROM jobs",
        "UPDATE jobs SET state = 'queued' RETURNING *",
        "SELECT jobs.* FROM jobs",
        "SELECT one.id, one.* FROM jobs AS one",
        "SELECT b.* FROM workers JOIN jobs b ON true",
    ):
        assert everything_of_a_table(refused, tables), refused
    for accepted in (
        "SELECT count(*) FROM jobs",
        "SELECT 2 * cost FROM jobs",
        "SELECT n.*, now() FROM unnest($1::text[]) AS n (name)",
        "SELECT * FROM unnest($1::text[]) AS n (name)",
        "WITH changed AS (UPDATE jobs SET cost = 1 RETURNING id) SELECT changed.* FROM changed",
    ):
        assert not everything_of_a_table(accepted, tables), accepted

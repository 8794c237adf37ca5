"""`waybill mapping report`: which rules of a mapping people correct most often."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from waybill.console.database import with_database
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import print_json, print_line, remark, styled
from waybill.db import Database
from waybill.errors import NotFound
from waybill_convert.repository import revisions
from waybill_documents.catalogue import names

_EXAMPLES = 3

Name = Annotated[str, typer.Argument(metavar="NAME", help="The mapping's name.")]


def report_corrections(name: Name, as_json: AsJson = False) -> None:
    """Report which rules of a mapping were corrected most often, and what was changed.

    Only documents that still exist are counted, because deleting a job deletes its corrections.
    """

    async def read(database: Database) -> tuple[int, list[dict[str, Any]]]:
        async with database.hot() as connection:
            converted = await revisions.converted(connection, name)
            return converted, await revisions.corrected(connection, name, examples=_EXAMPLES)

    converted, rules = with_database(read)
    if not converted and name not in names():
        raise NotFound(f"No document was converted with a mapping called '{name}'.")
    for rule in rules:
        rule["share"] = round(rule["documents"] / converted, 4) if converted else 0.0
    if as_json:
        print_json({"mapping": name, "converted": converted, "rules": rules})
        return
    if not rules:
        remark(f"Of {_documents(converted)} converted with {name}, none was corrected.")
        return
    print_line(f"{name}: {_documents(converted)} converted")
    columns = [
        Column("RULE", most=44),
        Column("CORRECTIONS", right=True, drop=1),
        Column("DOCUMENTS", right=True),
        Column("SHARE", right=True),
        Column("LATEST", least=20, wraps=True),
    ]
    print_table(columns, [_row(rule) for rule in rules])


def _row(rule: dict[str, Any]) -> list[Text]:
    return [
        styled(rule["rule"]),
        Text(f"{rule['corrections']:,}"),
        Text(f"{rule['documents']:,}"),
        Text(f"{rule['share']:.1%}"),
        styled("; ".join(f"{_shown(each['from'])} → {_shown(each['to'])}" for each in rule["examples"]), "dim"),
    ]


def _shown(value: str | int | None) -> str:
    """Shortened and in quotes, so that an empty text differs from a missing value."""
    if value is None:
        return "nothing"
    text = str(value)
    return json.dumps(text if len(text) <= 40 else f"{text[:39]}…", ensure_ascii=False)


def _documents(count: int) -> str:
    return "one document" if count == 1 else f"{count:,} documents"

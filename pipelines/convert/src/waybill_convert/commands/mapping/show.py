"""`waybill mapping show`: describes in words what a mapping looks for and checks."""

from __future__ import annotations

from collections.abc import Iterator

import typer
from rich.text import Text

from waybill.console.options import AsJson
from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import print_line, styled
from waybill_convert.commands.mapping.descriptions import described, described_column
from waybill_convert.commands.mapping.selection import Given, choose, explained
from waybill_convert.commands.mapping.trial_report import print_title
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping.model import CheckRule, TableRule

_NAME = Column("", most=26)
_WORDS = Column("", least=36, wraps=True)


def show(mapping: Given, as_json: AsJson = False) -> None:
    """Show what a mapping looks for and checks.

    With --json it prints the mapping's file, to copy from.
    """
    chosen = choose(mapping)
    with explained(chosen):
        loaded = chosen.load()
    if as_json:
        typer.echo(chosen.text().rstrip("\n"))
        return
    rules = loaded.mapping
    print_title(rules)
    print_facts(list(_facts(loaded)))
    if rules.fields or rules.computed:
        _heading("Fields")
        rows = [(styled(name), styled(described(rule))) for name, rule in rules.fields.items()]
        rows += [(styled(name), styled(f"= {made.text}", "dim")) for name, made in rules.computed.items()]
        print_table([_NAME, _WORDS], rows, indent=2)
    for name, table in rules.tables.items():
        _heading(name)
        print_facts(list(_table(table)))
        rows = [(styled(column), styled(described_column(rule))) for column, rule in table.columns.items()]
        rows += [(styled(note), styled(f"a line of its own that matches /{its}/")) for note, its in table.notes.items()]
        rows += [(styled(column), styled(f"= {made.text}", "dim")) for column, made in table.computed.items()]
        print_table([_NAME, _WORDS], rows, indent=2)
    if rules.checks:
        _heading("Checks")
        print_table(
            [_NAME, _WORDS], [(styled(name), styled(_check(rule))) for name, rule in rules.checks.items()], indent=2
        )


def _facts(loaded: LoadedMapping) -> Iterator[tuple[str, Text]]:
    rules = loaded.mapping
    yield "sha256", styled(loaded.sha256)
    if rules.embedded is not None:
        yield "reads", styled(f"the e-invoice embedded in a PDF, and writes it as {rules.embedded.output.upper()}")
    wanted = rules.recognise
    for word, phrases in (("all of", wanted.all), ("any of", wanted.any), ("none of", wanted.none)):
        if phrases:
            yield "recognised", styled(f"by {word} {', '.join(f'“{phrase}”' for phrase in phrases)}")
    if rules.locale is not None:
        yield "locale", styled(rules.locale.base)
    if rules.xml is not None:
        schema = f", checked by {rules.xml.xsd}" if rules.xml.xsd else ""
        yield "writes", styled(f"<{rules.xml.root.name}>{schema}")


def _table(table: TableRule) -> Iterator[tuple[str, Text]]:
    row = table.row
    yield (
        "a row",
        styled(f"begins where there is a {row.begins}" if row.begins else f"is a line that matches /{row.pattern}/"),
    )
    if table.start:
        yield "starts", styled(f"below {' or '.join(f'“{phrase}”' for phrase in table.start)}")
    if table.end:
        yield "ends", styled(f"before {' or '.join(f'“{phrase}”' for phrase in table.end)}")
    if table.skip:
        yield "skips", styled(", ".join(f"“{phrase}”" for phrase in table.skip))
    if table.carry is not None:
        yield "carries", styled(f"the sum of {table.carry.column} from page to page")


def _check(rule: CheckRule) -> str:
    each = f"for each of {rule.each}: " if rule.each else ""
    when = f" when {rule.when.text}" if rule.when else ""
    return f"{each}{rule.expect.text}{when}{'' if rule.required else ' (not required)'}"


def _heading(text: str) -> None:
    print_line()
    print_line(styled(text, "bold"))

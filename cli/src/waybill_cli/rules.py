"""`waybill rules`: check, test and explain the rules of battery passports, without a database.

docs/rules.md describes the language.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from waybill.console.exits import ExitCode
from waybill.console.human_units import counted
from waybill.console.options import AsJson
from waybill.console.tables import Column, print_table
from waybill.console.terminal import complain, print_json, print_line, styled
from waybill_passport.canonical import NotCanonical, exact, read
from waybill_passport.rules import (
    GivenFacts,
    RuleMistake,
    RulePackage,
    UnknownField,
    load_rules,
)
from waybill_passport.rules import explain as explained

app = typer.Typer(
    help="Write rules of battery passports: check, test, explain.", no_args_is_help=True, rich_markup_mode=None
)

Rules = Annotated[
    Path,
    typer.Argument(
        metavar="FILE", help="A rule package.", exists=True, dir_okay=False, readable=True, show_default=False
    ),
]


@app.command()
def check(file: Rules, as_json: AsJson = False) -> None:
    """Read a rule package, and list its fields in the order in which they are evaluated.

    Exits with 2 if there is a mistake in it.
    """
    package = _loaded(file)
    fields = [{"path": each.path, "type": str(each.type), "line": each.line} for each in package.fields]
    if as_json:
        hashes = {"rules_hash": package.rules_hash, "tests_hash": package.tests_hash}
        print_json({"fields": fields, "tests": len(package.tests), **hashes})
        return
    print_table(
        [Column("FIELD"), Column("TYPE"), Column("LINE", right=True)],
        [(styled(each["path"]), styled(each["type"]), styled(each["line"], "dim")) for each in fields],
    )
    print_line(styled(f"{counted(len(fields), 'field')}, {counted(len(package.tests), 'test')}. All well."))


@app.command("test")
def run_tests(file: Rules, as_json: AsJson = False) -> None:
    """Run the examples and properties of a rule package. Exits with 1 if one of them does not hold."""
    report = _loaded(file).run_tests()
    if as_json:
        failed = [
            {"name": each.name, "line": each.line, "message": each.message, "counterexample": each.counterexample}
            for each in report.failed
        ]
        print_json({"passed": report.passed, "failed": failed, "generated_cases": report.generated_cases})
    else:
        for each in report.failed:
            for line in str(each).splitlines():
                print_line(styled(line, "red"))
        cases = f", {counted(report.generated_cases, 'generated case')}" if report.generated_cases else ""
        print_line(styled(f"{report.passed} passed, {len(report.failed)} failed{cases}."))
    if report.failed:
        raise typer.Exit(ExitCode.REFUSED)


@app.command()
def explain(
    file: Rules,
    field: Annotated[str, typer.Argument(metavar="FIELD", help="The path of a field.", show_default=False)],
    facts: Annotated[
        Path | None,
        typer.Option(
            "--facts",
            metavar="FILE",
            help='Facts as JSON: [{"type": "Battery", "key": "battery:1", "payload": {…}}, …].',
            exists=True,
            dir_okay=False,
            readable=True,
        ),
    ] = None,
) -> None:
    """Say what a field is made of, and with --facts how its value comes about. Exits with 1 if it has none."""
    package = _loaded(file)
    try:
        found = explained(package, field, GivenFacts(_facts(facts) if facts is not None else {}))
    except UnknownField as unknown:
        complain(str(unknown))
        raise typer.Exit(ExitCode.USAGE) from unknown
    for line in found.lines():
        print_line(styled(line))
    if found.failure is not None:
        raise typer.Exit(ExitCode.REFUSED)


def _loaded(file: Path) -> RulePackage:
    try:
        return load_rules(file.read_bytes())
    except RuleMistake as mistake:
        complain(f"{file}: {mistake}")
        raise typer.Exit(ExitCode.USAGE) from mistake


def _facts(file: Path) -> dict[tuple[str, str], Any]:
    try:
        listed = read(file.read_bytes())
        return {(str(each["type"]), str(each["key"])): exact(each["payload"]) for each in listed}
    except NotCanonical as error:
        complain(f"{file}: {error}.")
    except (KeyError, TypeError):
        complain(f"{file}: facts are a list of objects with type, key and payload.")
    raise typer.Exit(ExitCode.USAGE)

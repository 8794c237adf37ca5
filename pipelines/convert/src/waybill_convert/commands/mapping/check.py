"""`waybill mapping check`: checks that mappings are valid and that their golden cases hold."""

from __future__ import annotations

from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain, print_line, styled
from waybill_convert.commands.mapping.selection import Chosen, choose, sentence
from waybill_documents.faults import MappingFault
from waybill_documents.golden_cases import golden_cases
from waybill_documents.mapping.loader import LoadedMapping

Several = Annotated[
    list[str], typer.Argument(metavar="MAPPING...", help="Files, folders, or names of shipped mappings.")
]


def check(mappings: Several) -> None:
    """Check mappings and the golden cases beside them. Exits with 2 if one is broken."""
    # Resolve all names first, because an unknown one ends the command.
    valid = [_is_valid(chosen) for chosen in [choose(given) for given in mappings]]
    if not all(valid):
        raise typer.Exit(ExitCode.USAGE)


def _is_valid(chosen: Chosen) -> bool:
    try:
        loaded = chosen.load()
    except MappingFault as fault:
        for each in (fault, *fault.more):
            complain(sentence(chosen, each))
        return False
    broken = 0
    cases = 0
    for case in golden_cases(chosen.folder):
        cases += 1
        difference = case.difference(loaded)
        if difference:
            broken += 1
            complain(f"{chosen.shown}: the golden case '{case.name}' does not hold:\n{difference}")
    if not broken:
        print_line(styled(f"{chosen.shown}: {_summary(loaded, cases)}"))
    return not broken


def _summary(loaded: LoadedMapping, cases: int) -> str:
    mapping = loaded.mapping
    counts = [
        (len(mapping.fields), "field"),
        (len(mapping.tables), "table"),
        (len(mapping.checks), "check"),
        (cases, "golden case"),
    ]
    said = ", ".join(f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return f"valid. {said or 'It reads the embedded invoice'}."

"""`waybill mapping try`: shows what a mapping makes of a document, with all you need to improve it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.human_units import size
from waybill.console.options import AsJson
from waybill.console.terminal import complain, print_json, remark
from waybill_convert.commands.mapping.document_argument import Source, faults_end
from waybill_convert.commands.mapping.selection import choose, explained
from waybill_convert.commands.mapping.trial import attempt
from waybill_convert.commands.mapping.trial_page import page_of
from waybill_convert.commands.mapping.trial_ranking import (
    candidates_with,
    chosen_of,
    print_ranking,
    ranking_json,
    ranking_of,
    refusal_json,
)
from waybill_convert.commands.mapping.trial_report import print_report
from waybill_documents.catalogue import AUTO
from waybill_documents.mapping.loader import LoadedMapping
from waybill_documents.mapping_choice import LookedAt, not_recognised
from waybill_documents.messages import LanguageCode


def try_(
    file: Source,
    mapping: Annotated[
        str,
        typer.Argument(
            metavar="MAPPING", help="A file, its folder, the name of a shipped mapping, or auto for the one that fits."
        ),
    ] = AUTO,
    among: Annotated[
        list[str] | None,
        typer.Option("--with", metavar="MAPPING", help="With auto: a mapping of yours that takes part. Repeatable."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="OUT.html", help="Draw the values on the pages, as one HTML file.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="OUT.xml", help="Write the XML to this file.")
    ] = None,
    rows: Annotated[int, typer.Option(metavar="N", min=1, help="Rows to show from each end of a table.")] = 3,
    language: Annotated[LanguageCode, typer.Option("--lang", help="The language of the checks' messages.")] = "en",
    as_json: AsJson = False,
) -> None:
    """Read a document with a mapping, and report the result.

    The report shows what was found, what is wrong and how long it took. Without a mapping, it first shows which ones
    recognise the document. The file is read in this process, as your user. Exits with 1 if the document is at fault,
    and with 2 if the mapping is.
    """
    looked: LookedAt | None = None
    if mapping == AUTO:
        looked = _looked_at(file, among or [])
        loaded = _chosen(looked, as_json=as_json)
    else:
        if among:
            raise typer.BadParameter("It is for auto, which is what you get without a mapping.", param_hint="--with")
        loaded = _load(mapping)
    trial = attempt(file, loaded)
    if as_json:
        print_json({**trial.to_json(), "ranking": ranking_json(looked)} if looked is not None else trial.to_json())
    else:
        if looked is not None:
            print_ranking(looked)
        print_report(trial, rows=rows, language=language)
    if html is not None:
        _write(html, page_of(trial, language=language).encode())
    if output is not None and trial.xml is not None:
        _write(output, trial.xml)
    if trial.fault is not None:
        raise typer.Exit(ExitCode.REFUSED)


def _load(given: str) -> LoadedMapping:
    chosen = choose(given)
    with explained(chosen):
        return chosen.load()


def _looked_at(file: Path, among: list[str]) -> LookedAt:
    with faults_end():
        return ranking_of(file, candidates_with(_load(each) for each in among))


def _chosen(looked: LookedAt, *, as_json: bool) -> LoadedMapping:
    """The mapping that the document chooses. Without one, the command ends with the ranking."""
    chosen = chosen_of(looked)
    if chosen is not None:
        return chosen
    if as_json:
        print_json(refusal_json(looked))
    else:
        print_ranking(looked)
        complain(not_recognised(looked).message)
    raise typer.Exit(ExitCode.REFUSED)


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise typer.BadParameter(f"{path} cannot be written: {error.strerror}") from error
    remark(f"Wrote {path} ({size(len(content))}).")

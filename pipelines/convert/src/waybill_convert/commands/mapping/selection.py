"""Finds the mapping that an argument names, and reports where in its file something is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated

import typer

from waybill.console.exits import ExitCode
from waybill.console.terminal import complain
from waybill_convert.commands.mapping.json_positions import place_in_message, place_of, without_place
from waybill_documents.catalogue import names
from waybill_documents.faults import MappingFault
from waybill_documents.mapping.loader import LoadedMapping, load

Given = Annotated[str, typer.Argument(metavar="MAPPING", help="A file, its folder, or the name of a shipped mapping.")]
FILE = "mapping.json"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Where a mapping is, before it is read."""

    folder: Path | Traversable
    file: str
    shown: str
    """How messages call it: the path as it was given, or the name of the shipped mapping."""

    def load(self) -> LoadedMapping:
        """Load and check the mapping. Raises MappingFault."""
        return load(self.folder, self.file)

    def text(self) -> str:
        """The file's text."""
        return (self.folder / self.file).read_bytes().decode("utf-8", "replace")


def choose(given: str) -> Chosen:
    """Find the mapping, or end the command if there is none."""
    path = Path(given)
    if path.is_dir() and (path / FILE).is_file():
        return Chosen(path, FILE, str(path / FILE))
    if path.is_file():
        return Chosen(path.parent, path.name, given)
    name = given.removesuffix(".json")
    if name in names():
        return Chosen(resources.files("waybill_documents") / "mappings" / name, FILE, name)
    near = get_close_matches(name, names(), n=1)
    hint = f" Did you mean '{near[0]}'?" if near else " `waybill mapping ls` lists the shipped ones."
    complain(f"There is no file and no shipped mapping called '{given}'.{hint}")
    raise typer.Exit(ExitCode.USAGE)


@contextmanager
def explained(chosen: Chosen) -> Iterator[None]:
    """End the command with a mapping's faults and their positions."""
    try:
        yield
    except MappingFault as fault:
        for each in (fault, *fault.more):
            complain(sentence(chosen, each))
        raise typer.Exit(ExitCode.USAGE) from fault


def sentence(chosen: Chosen, fault: MappingFault) -> str:
    """`mine.json:12:7: fields.vat: what is wrong`, which editors and terminals turn into a link."""
    try:
        line, column = place_of(chosen.text(), fault.where) if fault.where else place_in_message(fault.message)
    except OSError:
        line, column = 0, 0
    at = f":{line}:{column}" if line else ""
    return f"{chosen.shown}{at}: {without_place(str(fault))}"

"""The words of one language: a TOML file of the platform, and one of each installed pipeline."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from waybill.pipelines import Pipeline, installed

HOLE = re.compile(r"\{(\w+)(?::([\w.]+))?\}")
"""`{name}` is filled with a parameter, `{status:convert.states}` with the message that the parameter names in that
table, and `{run_at:time}` with a time as the language writes it."""
TIME = "time"

_FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Template:
    """A message's words, with holes for its parameters."""

    other: str
    one: str | None = None
    """Used when `count` is 1, in languages that make a difference."""

    def pattern(self, values: Mapping[str, object]) -> str:
        """The words for `%`, Python's fastest formatting: a long queue says thousands of messages."""
        return self._one if values.get("count") == 1 else self._other

    @cached_property
    def holes(self) -> frozenset[str]:
        return frozenset(hole[1] for hole in HOLE.finditer(self.other))

    @cached_property
    def formed(self) -> tuple[tuple[str, str], ...]:
        """The holes that name a form: the parameter, and `TIME` or the table that it names a message of."""
        return tuple((hole[1], hole[2]) for hole in HOLE.finditer(self.other) if hole[2])

    @cached_property
    def _other(self) -> str:
        return _for_percent(self.other)

    @cached_property
    def _one(self) -> str:
        return self._other if self.one is None else _for_percent(self.one)


Catalogue = dict[str, Template]
"""Words by key: `queue.title` is `title` in the table `queue`."""


def read(path: Path) -> Catalogue:
    return dict(_flat(tomllib.loads(path.read_text("utf-8"))))


@cache
def catalogues() -> dict[str, Catalogue]:
    """By language code: the platform's words with those of the pipelines. A pipeline may leave out a language."""
    found = {path.stem: read(path) for path in sorted(_FOLDER.glob("*.toml"))}
    for pipeline in installed():
        for code, catalogue in found.items():
            path = _folder_of(pipeline, f"{code}.toml")
            added = read(path) if path is not None else {}
            if taken := added.keys() & catalogue.keys():
                raise ValueError(f"{pipeline.name}: {code}.toml repeats {', '.join(sorted(taken))}")
            catalogue |= added
    return found


def _folder_of(pipeline: Pipeline, name: str) -> Path | None:
    """A file of the pipeline's `languages/` folder. Its pages are located, not imported: they load a web framework."""
    spec = find_spec(pipeline.pages) if pipeline.pages is not None else None
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    paths = (Path(folder) / "languages" / name for folder in folders)
    return next((path for path in paths if path.is_file()), None)


def _flat(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Template]]:
    for name, found in table.items():
        if isinstance(found, str):
            yield above + name, Template(found)
        elif found.keys() == {"one", "other"}:
            yield above + name, Template(found["other"], found["one"])
        else:
            yield from _flat(found, f"{above}{name}.")


def _for_percent(text: str) -> str:
    return HOLE.sub(r"%(\1)s", text.replace("%", "%%"))

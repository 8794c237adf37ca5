"""Who brings tables: the platform, the engine and every installed pipeline, each with its own branch of migrations.

A package that is no pipeline names its `Branch` by an entry point in the group `waybill.migrations`; a pipeline says
`migrations` and `models` in its `Pipeline`. Nothing here imports them before somebody asks.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points, version

from waybill import pipelines

GROUP = "waybill.migrations"


@dataclass(frozen=True, slots=True)
class Branch:
    """One package's tables. Its revisions are named `<name>_0001` and so on; the first has the name as its label."""

    name: str
    migrations: str
    """The package whose folder has the revisions."""
    models: Sequence[str] = ()
    """The modules with its SQLModel tables; tests compare them with what the migrations make."""
    release: str = ""
    """The release of the package that is installed here. `branches()` fills it in."""

    @property
    def folder(self) -> str:
        found = importlib.util.find_spec(self.migrations)
        if found is None or not found.submodule_search_locations:
            raise LookupError(f"{self.name}: there is no package {self.migrations} with migrations")
        return next(iter(found.submodule_search_locations))


PLATFORM = Branch(
    "platform",
    migrations="waybill.db.migrations.versions",
    models=(
        "waybill.audit.models",
        "waybill.idempotency.models",
        "waybill.janitor.models",
        "waybill.retention.models",
        "waybill.security.models",
    ),
)


@cache
def branches() -> tuple[Branch, ...]:
    """Every branch that is installed, the platform's first."""
    entries = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    others = [replace(entry.load(), release=_release(entry)) for entry in entries]
    installed = pipelines.installed()  # ends the process in plain words if one cannot be loaded
    releases = {entry.load().name: _release(entry) for entry in entry_points(group=pipelines.GROUP)}
    of_pipelines = [
        Branch(pipeline.name, pipeline.migrations, pipeline.models, releases.get(pipeline.name, ""))
        for pipeline in installed
        if pipeline.migrations is not None
    ]
    return (replace(PLATFORM, release=version("waybill-common")), *others, *of_pipelines)


def _release(entry: EntryPoint) -> str:
    return entry.dist.version if entry.dist is not None else ""


def import_models() -> None:
    """Declare every table of every branch to SQLModel."""
    for branch in branches():
        for module in branch.models:
            importlib.import_module(module)

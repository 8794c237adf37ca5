"""What a pipeline brings, and which pipelines are installed.

A pipeline is a Python package with an entry point in the group `waybill.pipelines` that names a `Pipeline`. Services
and the command line go over `installed()`; none of them names a pipeline. Everything a pipeline brings is a reference
(`package.module` or `package.module:attribute`) that is imported by the process that needs it: the worker never loads
web pages, the API never loads handlers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import Any, NoReturn

GROUP = "waybill.pipelines"


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A package's contribution to each service. Leave out what it does not have."""

    name: str
    """Lower case; the prefix of its permissions, retention rules and static files."""
    kinds: str | None = None
    """A sequence of `waybill_engine.JobKind`."""
    handlers: str | None = None
    """The module that registers handlers; imported by the worker."""
    models: Sequence[str] = ()
    """The modules with its SQLModel tables; imported to compare them with the migrations."""
    migrations: str | None = None
    """The package with its branch of Alembic revisions."""
    api: str | None = None
    """A `waybill.web.ApiPart`: its routes, and the services behind them."""
    pages: str | None = None
    """The package with `templates/`, `static/` and `languages/`."""
    navigation: Sequence[tuple[str, str]] = ()
    """Its entries in the pages' header: path and message key. Those of a pipeline with a `landing` come first."""
    landing: str | None = None
    """The page that a browser sees after signing in. The first pipeline that has one decides."""
    retention: str | None = None
    """A `waybill.retention.PipelineRetention`: how long its rows and files are kept, and who names stored files."""
    erasure: str | None = None
    """A `waybill_engine.erasure.Eraser`: how everything of a tenant or an owner is removed."""
    listener: str | None = None
    """An async function that is called with each event any pipeline publishes; see `waybill.changes.publish`."""
    commands: Mapping[str, str] = field(default_factory=dict)
    """Its `waybill` commands by name: a Typer app or a function."""
    tenant_commands: Mapping[str, str] = field(default_factory=dict)
    """Its commands below `waybill tenant`: functions whose first argument is the tenant. All that an operator decides
    about a tenant stands there."""
    check: str | None = None
    """An async function that says in a sentence what a person has to mend in the settings, or None. `/readyz` shows it,
    and `waybill selftest` fails."""
    job_facts: str | None = None
    """An async function of a connection and a job's id that returns what the pipeline knows of the job, as names and
    texts. `waybill jobs show` prints it."""
    settings: Sequence[str] = ()
    """Its settings classes."""
    permissions: Mapping[str, str] = field(default_factory=dict)
    """What an API key may be allowed to do: `convert:read`, and what that means in words."""
    visitor_permissions: Sequence[str] = ()
    """Those that a browser has without an API key."""


@cache
def installed() -> tuple[Pipeline, ...]:
    """Every pipeline there is, in the order of their names.

    One that cannot be loaded ends the process with exit code 2 and a sentence: running without it would leave its jobs
    and its files to nobody.
    """
    found: dict[str, Pipeline] = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            pipeline: Pipeline = entry.load()
        except Exception as error:  # noqa: BLE001 - whatever a stranger's package raises
            _refuse(f"The pipeline {entry.name!r} ({entry.value}) cannot be loaded: {type(error).__name__}: {error}")
        if pipeline.name in found:
            _refuse(f"Two installed pipelines are called {pipeline.name!r}. Uninstall one of them.")
        found[pipeline.name] = pipeline
    return tuple(found.values())


def _refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"{sentence}\n")
    raise SystemExit(2)


def resolve(reference: str) -> Any:
    """Import what a reference names: a module, or an attribute of one."""
    module, _, attribute = reference.partition(":")
    found: Any = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def brought(part: str) -> list[Any]:
    """What the installed pipelines bring of one part, imported: `brought("retention")`."""
    references = [getattr(pipeline, part) for pipeline in installed()]
    return [resolve(reference) for reference in references if reference is not None]

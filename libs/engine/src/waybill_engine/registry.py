"""What this process knows by name: kinds of jobs, the handlers that do their work, and the schedules it declares.

    @handles(SEND_EMAIL)
    async def send_email(payload: dict[str, Any], job: JobContext) -> None: ...

A worker serves the kinds it has handlers for, and no others. Whoever puts a program together registers the kinds that
are installed with `register_kinds`; `kind_named` then finds one without importing the package that declares it.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill.errors import NotFound
from waybill_engine.kinds import KINDS, JobKind

if TYPE_CHECKING:
    from waybill_engine.context import JobContext
    from waybill_engine.schedules import Schedule

HandlerFunction = Callable[[dict[str, Any], "JobContext"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Handler:
    kind: JobKind
    run: HandlerFunction


_handlers: dict[str, Handler] = {}
_kinds: dict[str, JobKind] = {kind.name: kind for kind in KINDS}
_configured: dict[JobKind, JobKind] = {}
"""Settings are read once: somebody may ask for the same kind for each of a hundred thousand jobs."""
_schedules: dict[str, Schedule] = {}


def handles(kind: JobKind) -> Callable[[HandlerFunction], HandlerFunction]:
    """Register the decorated function as the handler of a kind, and the kind with it."""

    def register(function: HandlerFunction) -> HandlerFunction:
        known = _handlers.get(kind.name)
        if known is not None and known.run is not function:
            raise ValueError(f"kind {kind.name!r} has two handlers: {known.run!r} and {function!r}")
        register_kinds([kind])
        _handlers[kind.name] = Handler(kind, function)
        return function

    return register


def load_handlers(modules: Sequence[str], kinds: Sequence[str] = ()) -> Mapping[str, Handler]:
    """Import the modules that register handlers; return the handlers of `kinds`, or all of them."""
    for module in modules:
        importlib.import_module(module)
    missing = sorted(set(kinds) - _handlers.keys())
    if missing:
        known = ", ".join(sorted(_handlers)) or "none"
        raise LookupError(f"no handler for {', '.join(missing)}; there are handlers for: {known}")
    return {name: handler for name, handler in _handlers.items() if not kinds or name in kinds}


def register_kinds(kinds: Iterable[JobKind]) -> None:
    """Make kinds known by their names. Two different kinds cannot have the same name."""
    for kind in kinds:
        known = _kinds.setdefault(kind.name, kind)
        if known != kind:
            raise ValueError(f"two kinds are called {kind.name!r}: {known!r} and {kind!r}")


def known_kinds() -> Mapping[str, JobKind]:
    """The engine's own kinds and all that were registered, by name."""
    return dict(sorted(_kinds.items()))


def kind_named(name: str) -> JobKind:
    """The kind with this name, so that a pipeline can enqueue another pipeline's jobs without importing it.

    await enqueue_family(session, parent, [NewJob(kind_named("convert_pdf"), tenant, payload)])

    It is as this process's settings want it. Raises NotFound if nobody registered it.
    """
    kind = _kinds.get(name)
    if kind is None:
        raise NotFound(f"There is no kind {name!r}. Known kinds: {', '.join(sorted(_kinds))}.")
    if kind.configured is None:
        return kind
    if kind not in _configured:
        _configured[kind] = kind.configured(kind)
    return _configured[kind]


def declares(schedule: Schedule) -> Schedule:
    """Have every worker that imports this module declare the schedule when it starts.

    NIGHTLY = declares(Schedule("nightly_report", MAKE_REPORT, "30 2 * * *", tenant="acme", timezone="Europe/Berlin"))
    """
    known = _schedules.setdefault(schedule.name, schedule)
    if known != schedule:
        raise ValueError(f"schedule {schedule.name!r} is declared twice: {known!r} and {schedule!r}")
    return schedule


def declared_schedules() -> Sequence[Schedule]:
    """The schedules that the modules imported so far declare."""
    return [_schedules[name] for name in sorted(_schedules)]

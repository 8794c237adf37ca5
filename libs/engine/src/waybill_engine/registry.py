"""Handlers: the small async functions that do a kind's work.

    @handles(CONVERT_PDF)
    async def convert_pdf(payload: dict[str, Any], job: JobContext) -> None: ...

A worker serves the kinds it has handlers for, and no others.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from waybill_engine import JobKind

if TYPE_CHECKING:
    from waybill_engine.context import JobContext

HandlerFunction = Callable[[dict[str, Any], "JobContext"], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Handler:
    kind: JobKind
    run: HandlerFunction


_registered: dict[str, Handler] = {}


def handles(kind: JobKind) -> Callable[[HandlerFunction], HandlerFunction]:
    """Register the decorated function for a kind."""

    def register(function: HandlerFunction) -> HandlerFunction:
        known = _registered.get(kind.name)
        if known is not None and known.run is not function:
            raise ValueError(f"kind {kind.name!r} has two handlers: {known.run!r} and {function!r}")
        _registered[kind.name] = Handler(kind, function)
        return function

    return register


def load_handlers(modules: Sequence[str], kinds: Sequence[str] = ()) -> Mapping[str, Handler]:
    """Import the modules that register handlers; keep those for `kinds`, or all."""
    for module in modules:
        importlib.import_module(module)
    missing = sorted(set(kinds) - _registered.keys())
    if missing:
        known = ", ".join(sorted(_registered)) or "none"
        raise LookupError(f"no handler for {', '.join(missing)}; there are handlers for: {known}")
    return {name: handler for name, handler in _registered.items() if not kinds or name in kinds}

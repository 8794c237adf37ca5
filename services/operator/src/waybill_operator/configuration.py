"""What the chart tells the operator in files: the template of worker pods, and the pool `default`.

A ConfigMap that is mounted changes under our feet within a minute of `helm upgrade`, so the files are looked at again
and again. Files that cannot be used are reported, and what was read before stays in force.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

import structlog
import yaml  # type: ignore[import-untyped]

from waybill.cluster import Object
from waybill_operator.pools.objects import CONTAINER
from waybill_operator.pools.spec import InvalidSpec, parse

log: structlog.stdlib.BoundLogger = structlog.get_logger()

TEMPLATE, DEFAULT_POOL = "worker-template.yaml", "default-pool.yaml"
_LOOK_EVERY = 5.0
_MOST_BYTES = 1 << 20
_NEEDED_LABELS = ("app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/component")


class BadConfiguration(Exception):
    """A file that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Configuration:
    template: Object
    """A PodTemplateSpec with a container `worker`."""
    default_pool: Object | None
    """The spec of the pool `default`; None if the chart wants none."""

    @classmethod
    def read(cls, folder: Path) -> Configuration:
        template = _template(_yaml(folder / TEMPLATE))
        path = folder / DEFAULT_POOL
        if not path.exists():
            return cls(template, None)
        spec = _yaml(path)
        if spec is None:
            return cls(template, None)
        try:
            parse(spec)
        except InvalidSpec as error:
            raise BadConfiguration(f"{path}: {error}") from error
        return cls(template, spec)


class ConfigurationFolder:
    """The newest configuration that could be read."""

    def __init__(self, folder: Path, *, look_every: float = _LOOK_EVERY) -> None:
        self._folder = folder
        self._look_every = look_every
        self._listeners: list[Callable[[], None]] = []
        self.current: Configuration | None = None
        self.trouble: str | None = None
        """Why the files cannot be used now."""

    def on_change(self, listener: Callable[[], None]) -> None:
        self._listeners.append(listener)

    def off_change(self, listener: Callable[[], None]) -> None:
        self._listeners.remove(listener)

    def look(self) -> None:
        """Read the files, and tell if they say something new."""
        try:
            found = Configuration.read(self._folder)
        except (BadConfiguration, OSError) as error:
            if self.trouble != str(error):
                log.error("configuration_not_read", error=str(error), setting="WAYBILL_OPERATOR_CONFIG_DIR")
            self.trouble = str(error)
            return
        self.trouble = None
        if found == self.current:
            return
        if self.current is not None:
            log.info("configuration_changed")
        self.current = found
        for listener in list(self._listeners):
            listener()

    async def run(self) -> Never:
        while True:
            await asyncio.sleep(self._look_every)
            self.look()


def _yaml(path: Path) -> Any:
    with path.open("rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise BadConfiguration(f"{path}: is larger than {_MOST_BYTES} bytes")
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadConfiguration(f"{path}: is not YAML: {error}") from error


def _template(found: object) -> Object:
    where = f"{TEMPLATE}:"
    if not isinstance(found, dict):
        raise BadConfiguration(f"{where} must be a pod template")
    labels = (found.get("metadata") or {}).get("labels") or {}
    missing = [key for key in _NEEDED_LABELS if key not in labels]
    if missing:
        raise BadConfiguration(f"{where} lacks the labels {', '.join(missing)}, by which pods are found")
    containers = (found.get("spec") or {}).get("containers") or []
    if CONTAINER not in [one.get("name") for one in containers if isinstance(one, dict)]:
        raise BadConfiguration(f"{where} has no container called `{CONTAINER}`")
    return found

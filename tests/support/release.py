"""The chart, installed by helm into a namespace of a cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.cluster import Cluster, Object

CHART = Path(__file__).resolve().parents[2] / "charts" / "waybill"


class Release:
    """One release. `values` are what its owner keeps in a file; a later call may add to them."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path, values: Object, name: str = "waybill") -> None:
        self.cluster = cluster
        self.namespace = namespace
        self.name = name
        self.values = values
        self.folder = folder
        self._file = folder / f"{namespace}-{name}-values.json"

    def install(self, *options: str, within: float = 240) -> str:
        return self._helm("install", *self._what(), f"--timeout={within:g}s", *options, within=within + 60)

    def upgrade(self, *options: str, within: float = 240, **values: Any) -> str:
        """Upgrade with values that are merged into those before."""
        self.values = merged(self.values, values)
        return self._helm("upgrade", *self._what(), f"--timeout={within:g}s", *options, within=within + 60)

    def uninstall(self, *options: str, within: float = 240) -> str:
        return self._helm("uninstall", self.name, "--wait", f"--timeout={within:g}s", *options, within=within + 60)

    def status(self) -> Object:
        found: Object = json.loads(self._helm("status", self.name, "--output=json"))
        return found

    def manifest(self) -> str:
        """What helm sent to the cluster, without hooks."""
        return self._helm("get", "manifest", self.name)

    def get(self, kind: str, ending: str = "") -> Object:
        """An object of the release by the end of its name: `-operator`."""
        return self.cluster.get(kind, f"{self.name}{ending}", self.namespace)

    def find(self, kind: str, ending: str = "") -> Object | None:
        return self.cluster.find(kind, f"{self.name}{ending}", self.namespace)

    def pods(self, component: str) -> list[Object]:
        """The pods of a component that are not about to go."""
        found = self.cluster.list("pods", self.namespace, f"app.kubernetes.io/component={component}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    def _what(self) -> list[str]:
        self._file.write_text(json.dumps(self.values))
        return [self.name, str(CHART), f"--values={self._file}"]

    def _helm(self, *arguments: str, within: float = 120) -> str:
        return self.cluster.helm(*arguments, f"--namespace={self.namespace}", within=within)


def merged(values: Object, changes: Object) -> Object:
    """Values with changes, as helm merges files."""
    both = dict(values)
    for name, change in changes.items():
        before = both.get(name)
        both[name] = merged(before, change) if isinstance(before, dict) and isinstance(change, dict) else change
    return both

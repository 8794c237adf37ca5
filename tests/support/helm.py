"""Finds helm and renders the chart with it.

Helm is the program that `HELM_BIN` names, one on the path, or the one that `make test` unpacks into the environment.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

CHART = Path(__file__).resolve().parents[2] / "charts" / "waybill"
NO_HELM = "there is no helm: set HELM_BIN, put it on the path, or run `make test`"

Values = Mapping[str, Any]
Object = dict[str, Any]

_NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data:
  text: {{ include (print .Template.BasePath "/NOTES.txt") . | quote }}
"""

# The chart must not see a cluster or the settings of the person who runs the tests.
_ENVIRONMENT = {"KUBECONFIG": os.devnull, "HOME": "/nonexistent", "PATH": os.environ.get("PATH", "")}


class RenderError(Exception):
    """What helm said when it refused."""


def find_helm() -> str | None:
    given = os.environ.get("HELM_BIN")
    return shutil.which(given or "helm") or (None if given else shutil.which(Path(sys.executable).with_name("helm")))


class Helm:
    """Runs helm on the chart, in a folder of its own."""

    def __init__(self, program: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        self._count = 0

    def render(
        self,
        values: Values,
        *,
        release: str = "prod",
        namespace: str = "papers",
        kubernetes: str = "1.34.1",
        set_values: tuple[str, ...] = (),
    ) -> list[Object]:
        """All objects, hooks included."""
        options = ["--namespace", namespace, "--kube-version", kubernetes]
        text = self._run("template", release, str(CHART), *options, *self._given(values, set_values))
        return [each for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]

    def notes(self, values: Values, *, release: str = "prod") -> str:
        """What a person reads after the installation. An object shows them, since helm 3 wants a cluster for that."""
        more = [*values.get("extraObjects", ()), _NOTES]
        objects = self.render({**values, "extraObjects": more}, release=release)
        (found,) = [one for one in objects if one["metadata"]["name"] == "notes"]
        return str(found["data"]["text"])

    def lint(self, values: Values) -> str:
        return self._run("lint", "--strict", str(CHART), *self._given(values, ()))

    def refusal(self, values: Values, *set_values: str) -> str:
        """The message with which the chart refuses these values."""
        with pytest.raises(RenderError) as refused:
            self.render(values, set_values=set_values)
        return str(refused.value)

    def _given(self, values: Values, set_values: tuple[str, ...]) -> list[str]:
        self._count += 1
        file = self._folder / f"values-{self._count}.json"
        file.write_text(json.dumps(values))  # JSON is YAML, and quicker to write
        return ["--values", str(file), *(part for each in set_values for part in ("--set", each))]

    def _run(self, *arguments: str) -> str:
        folders = {f"HELM_{name}_HOME": str(self._folder) for name in ("CACHE", "CONFIG", "DATA")}
        ran = subprocess.run(
            [self._program, *arguments], env={**_ENVIRONMENT, **folders}, capture_output=True, text=True, check=False
        )
        if ran.returncode:
            raise RenderError(ran.stderr + ran.stdout)
        return ran.stdout

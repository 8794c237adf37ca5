"""Finds the programs on this machine, and says how to get one that is not there."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass


class ProgramError(Exception):
    """A program cannot be used; the message says what to do about it."""


@dataclass(frozen=True, slots=True)
class Program:
    name: str
    variable: str
    """The variable that names the program, if it is not in the PATH."""
    purpose: str
    source: str
    """How a person gets it."""

    def find(self) -> str:
        """The path of the program. Raises if there is none."""
        named = os.environ.get(self.variable)
        if found := shutil.which(named or self.name.lower()):
            return found
        if named:
            raise ProgramError(f"{self.variable}={named} is no program that can be run here. {self._how_to_get_it}")
        raise ProgramError(f"There is no {self.name}, so {self.purpose}. {self._how_to_get_it}")

    @property
    def _how_to_get_it(self) -> str:
        return f"{self.source} Then start again, with the program in the PATH or named: {self.variable}=/path/to/it"


PROMETHEUS = Program(
    "Prometheus",
    "PROMETHEUS_BIN",
    "nothing collects metrics and no alert can fire",
    "To get it: apt install prometheus, brew install prometheus, or https://prometheus.io/download.",
)
JAEGER = Program(
    "Jaeger",
    "JAEGER_BIN",
    "nothing collects traces",
    "To get it: the program `jaeger` (version 2) from https://www.jaegertracing.io/download.",
)

"""A program that a test runs and listens to. It is forked (see `support.zygote`): Python's start would take longer."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

from support.zygote import Program


class Forked:
    """A running `python -m MODULE ARGUMENTS` in a folder, with its output and errors in a file there."""

    _numbers = itertools.count(1)

    def __init__(self, module: str, *arguments: str, folder: Path, **environment: str) -> None:
        self._output = folder / f"{module}-{next(self._numbers)}.log"
        with self._output.open("wb") as output:
            self._program = Program(module, *arguments, env={**os.environ, **environment}, output=output, cwd=folder)

    @property
    def text(self) -> str:
        return self._output.read_text()

    def runs(self) -> bool:
        return self._program.poll() is None

    def ended(self) -> tuple[int, str]:
        """Wait for the end; the exit code and what was said."""
        return self._program.wait(), self.text

    def kill(self) -> None:
        self._program.kill()
        self._program.wait()

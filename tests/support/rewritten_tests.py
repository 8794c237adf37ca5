"""Writes the byte code of test modules once, before several testers start.

pytest compiles a test module, with its assertions rewritten, where that has not been done: in a fresh clone all of
them. Testers start together, so each would do it for itself, which takes half of their start. pytest has no public way
to do it beforehand. These functions of its own are called as its import hook calls them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion import rewrite


def write_before_testers(config: pytest.Config) -> None:
    """In the process that starts testers: compile what they will need, on every processor."""
    if sys.dont_write_bytecode or hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        return
    missing = [path for path in _modules(config) if _stored(path, config) is None]
    share = os.cpu_count() or 1
    children = []
    for first in range(share):
        if not (part := missing[first::share]):
            continue
        if (child := os.fork()) == 0:
            try:
                for path in part:
                    _write(path, config)
            finally:  # a module that cannot be compiled is for a tester to report
                os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)  # whatever it did not write, a tester will


def _modules(config: pytest.Config) -> Iterator[Path]:
    for argument in config.args:
        place = config.invocation_params.dir / argument.partition("::")[0]
        yield from sorted(place.rglob("test_*.py")) if place.is_dir() else [place]


def _stored(path: Path, config: pytest.Config) -> object:
    return rewrite._read_pyc(path, _place(path), config.stash[rewrite.assertstate_key].trace)


def _write(path: Path, config: pytest.Config) -> None:
    if rewrite.try_makedirs(rewrite.get_cache_dir(path)):
        source, code = rewrite._rewrite_test(path, config)
        rewrite._write_pyc(config.stash[rewrite.assertstate_key], code, source, _place(path))


def _place(path: Path) -> Path:
    return rewrite.get_cache_dir(path) / (path.name.removesuffix(".py") + rewrite.PYC_TAIL)

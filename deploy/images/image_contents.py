"""What each image contains: the distributions that its roots need, by the metadata of what is installed here.

The roots stand in the workspace's pyproject.toml, in the dependency groups `image-…`. The names that follow from them
stand in `packages/`, one file for each image, so that a reviewer sees what a change brings in; versions and hashes are
in requirements.lock alone. `make docs` writes the files, `make check` compares them.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

HERE = Path(__file__).parent
PACKAGES = HERE / "packages"
WORKSPACE = HERE.parents[1] / "pyproject.toml"
PREFIX = "image-"
# Markers are evaluated for everything that a base image may be, so the files are the same wherever they are written.
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")


def roots() -> dict[str, list[Requirement]]:
    """What each image is made for, by the image's name."""
    groups = tomllib.loads(WORKSPACE.read_text(encoding="utf-8"))["dependency-groups"]
    return {
        name.removeprefix(PREFIX): [Requirement(line) for line in lines]
        for name, lines in groups.items()
        if name.startswith(PREFIX)
    }


def needed(requirements: Iterable[Requirement]) -> list[str]:
    """The names of these distributions and of all that they need, sorted.

    A distribution that only another Python needs is not installed here. Its name is kept, and what it needs in turn is
    not known; `pip check` finds that when the image is built.
    """
    found: set[str] = set()
    seen: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        requirement = waiting.pop()
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        found.add(name)
        waiting += _requirements(name, extras)
    return sorted(found)


def _requirements(name: str, extras: frozenset[str]) -> list[Requirement]:
    try:
        declared = distribution(name).requires or []
    except PackageNotFoundError:
        return []
    return [requirement for requirement in map(Requirement, declared) if _applies(requirement, extras)]


def _applies(requirement: Requirement, extras: frozenset[str]) -> bool:
    marker = requirement.marker
    return marker is None or any(marker.evaluate(environment) for environment in _environments(extras))


def _environments(extras: frozenset[str]) -> Iterator[dict[str, str]]:
    for extra in extras | {""}:
        for python in PYTHONS:
            for machine in MACHINES:
                yield {
                    "extra": extra,
                    "implementation_name": "cpython",
                    "os_name": "posix",
                    "platform_machine": machine,
                    "platform_python_implementation": "CPython",
                    "platform_system": "Linux",
                    "python_full_version": f"{python}.0",
                    "python_version": python,
                    "sys_platform": "linux",
                }


def files() -> dict[Path, str]:
    """The files of `packages/` as they should be."""
    return {
        PACKAGES / f"{image}.txt": "".join(f"{name}\n" for name in needed(wanted)) for image, wanted in roots().items()
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Writes or checks the lists of what each image contains.")
    parser.add_argument("action", choices=["write", "check"])
    action = parser.parse_args().action
    wanted = files()
    stale = [path for path in PACKAGES.glob("*.txt") if path not in wanted]
    if action == "write":
        PACKAGES.mkdir(exist_ok=True)
        for path in stale:
            path.unlink()
        for path, text in wanted.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale += [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in sorted(stale):
        sys.stderr.write(f"{path.relative_to(WORKSPACE.parent)} is not current: run `make docs`\n")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

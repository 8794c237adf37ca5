"""Splits requirements.lock into what each image installs, with versions and hashes as they stand there.

It runs while an image is built, on nothing but the standard library. The names come from `packages/`, see
`image_contents`. What every image has goes into `shared.lock`, because that is one layer for all of them; the rest goes
into `NAME.lock`, and Waybill's own distributions into `NAME.own`, since they are built from source.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

APART = {"build", "dev-s3"}
"""What is no service and shares nothing with them: the tools of the build, and what only tests use."""


def own(name: str) -> bool:
    return name.startswith("waybill-")


def pins(lock: str) -> dict[str, str]:
    """The lock's entries, each with its marker and its hashes, by name."""
    entries = re.findall(r"^[^\s#][^\n]*(?:\n[ \t]+[^\n]*)*\n?", lock, re.MULTILINE)
    return {re.split(r"[\s\[=;]", entry, maxsplit=1)[0]: entry.rstrip("\n") + "\n" for entry in entries}


def split(lock: str, packages: Mapping[str, list[str]]) -> dict[str, str]:
    """The files to write, by name. Raises LookupError with a sentence if the lock lacks something."""
    pinned = pins(lock)
    third_party = {image: [name for name in names if not own(name)] for image, names in packages.items()}
    missing = sorted({name for names in third_party.values() for name in names} - pinned.keys())
    if missing:
        raise LookupError(f"requirements.lock does not have {', '.join(missing)}: run `make lock`")
    services = [set(names) for image, names in third_party.items() if image not in APART]
    shared = set.intersection(*services) if services else set()
    result = {"shared.lock": "".join(pinned[name] for name in sorted(shared))}
    for image, names in third_party.items():
        rest = names if image in APART else [name for name in names if name not in shared]
        result[f"{image}.lock"] = "".join(pinned[name] for name in rest)
        result[f"{image}.own"] = "".join(f"{name}\n" for name in packages[image] if own(name))
    return result


def main(lock: Path, packages: Path, target: Path) -> int:
    names = {path.stem: path.read_text(encoding="utf-8").split() for path in sorted(packages.glob("*.txt"))}
    try:
        files = split(lock.read_text(encoding="utf-8"), names)
    except LookupError as error:
        sys.stderr.write(f"{error.args[0]}\n")
        return 1
    target.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (target / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:4])))

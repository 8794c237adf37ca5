"""A folder that can be full: on a small volume of its own where one may be mounted."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path


class SmallDisk:
    def __init__(self, folder: Path, *, mounted: bool) -> None:
        self.mounted = mounted
        self._folder = folder
        self._filler = folder / "filler"
        self._results = folder / "results"

    def fill(self) -> None:
        """From now on nothing can be stored here."""
        if not self.mounted:
            # Nobody can create a folder where a file is, not even root.
            shutil.rmtree(self._results, ignore_errors=True)
            self._results.touch()
            return
        with self._filler.open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))

    def empty(self) -> None:
        """There is room again."""
        (self._filler if self.mounted else self._results).unlink()


@contextlib.contextmanager
def small_disk(folder: Path, megabytes: int = 64) -> Iterator[SmallDisk]:
    """Make the folder a volume of its own, if we may mount one; else only `fill` tells the difference."""
    folder.mkdir(parents=True)
    command = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "waybill-test", os.fspath(folder)]
    try:
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError as error:
        assert error.errno == errno.ENOENT  # noqa: PT017 - there is no mount here
        mounted = False
    try:
        yield SmallDisk(folder, mounted=mounted)
    finally:
        if mounted:
            # Lazily, because processes may still have files open there.
            subprocess.run(["umount", "-l", os.fspath(folder)], check=True)

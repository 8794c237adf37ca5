"""Asks the kernel whether its OOM killer was at work in our cgroup. This is for the log; nothing depends on it."""

from __future__ import annotations

from pathlib import Path

_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUP = Path("/proc/self/cgroup")


class OomKills:
    """Reads the counter of cgroup version 2. Other systems have none."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or _events_file()
        self._known = self._count()

    def any_new(self) -> bool | None:
        """Whether it has killed anything since the last call. None if the system does not tell."""
        before, self._known = self._known, self._count()
        if before is None or self._known is None:
            return None
        return self._known > before

    def _count(self) -> int | None:
        try:
            counts = dict(line.split() for line in self._file.read_text().splitlines())
            return int(counts["oom_kill"])
        except (OSError, KeyError, ValueError):
            return None


def _events_file() -> Path:
    folder = _CGROUPS
    try:
        for line in _OWN_CGROUP.read_text().splitlines():
            if line.startswith("0::/"):
                folder = _CGROUPS / line.removeprefix("0::/")
    except OSError:
        pass  # not Linux
    return folder / "memory.events"

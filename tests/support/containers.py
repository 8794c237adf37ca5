"""Runs an image as a restricted pod would: read-only root, no capability, a user without a name, and process 1.

Buildah unpacks the image and runc runs it, so no daemon is needed. The network is this machine's, so that tests can
reach a port.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.patience import PATIENCE, wait_until

USER = 10001
_numbers = itertools.count()


def missing() -> str | None:
    """What this machine lacks, in a sentence; None if nothing."""
    if os.geteuid() != 0:
        return "only root can unpack and run images here"
    absent = [name for name in ("buildah", "runc", "make") if shutil.which(name) is None]
    return f"there is no {' and no '.join(absent)} here" if absent else None


@dataclass
class Image:
    name: str
    root: Path
    config: dict[str, Any]
    """What the image says about itself, in Docker's words."""
    layers: list[str]
    """The checksums of its layers, from the base up."""


@contextmanager
def unpacked(name: str) -> Iterator[Image]:
    described = json.loads(_output("buildah", "inspect", "--type", "image", name))["Docker"]
    container = _output("buildah", "from", "--pull-never", name)
    try:
        root = Path(_output("buildah", "mount", container))
        yield Image(name, root, described["config"], described["rootfs"]["diff_ids"])
    finally:
        _output("buildah", "rm", container)


class Container:
    """A running image."""

    def __init__(self, identifier: str, stop_signal: str, process: subprocess.Popen[bytes], log: Path) -> None:
        self._identifier = identifier
        self._signal = stop_signal or "SIGTERM"
        self._process = process
        self._log = log

    def log(self) -> str:
        return self._log.read_text(encoding="utf-8", errors="replace")

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command beside it, as a probe or a person does."""
        return subprocess.run(
            ["runc", "exec", self._identifier, *command], capture_output=True, text=True, check=False, timeout=PATIENCE
        )

    def healthy(self, image: Image) -> bool:
        """What the image's own health check says."""
        assert self._process.poll() is None, f"it has ended:\n{self.log()}"
        form, *command = image.config["Healthcheck"]["Test"]
        assert form == "CMD", "a check in a shell"
        return self.execute(*command).returncode == 0

    def wait_until_healthy(self, image: Image) -> None:
        wait_until(lambda: self.healthy(image), f"{image.name} is healthy")

    def stop(self, within: float = PATIENCE) -> int:
        """Send process 1 the signal that the image asks for, and return the exit code."""
        subprocess.run(["runc", "kill", self._identifier, self._signal.removeprefix("SIG")], check=True)
        return self._process.wait(within)

    def wait(self, within: float = PATIENCE) -> int:
        return self._process.wait(within)

    def close(self) -> None:
        subprocess.run(["runc", "delete", "--force", self._identifier], check=False, capture_output=True)
        self._process.wait(PATIENCE)


def volume(folder: Path, user: int = USER) -> Path:
    """A new folder that belongs to a container's user, as a cluster prepares a volume."""
    folder.mkdir()
    os.chown(folder, user, user)
    return folder


@contextmanager
def running(
    image: Image,
    folder: Path,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    volumes: Mapping[str, Path] | None = None,
    user: int = USER,
    command: list[str] | None = None,
) -> Iterator[Container]:
    """Run it with these arguments, or with another command. `volumes` are folders by the place they are mounted on."""
    identifier = f"waybill-{os.getpid()}-{next(_numbers)}"
    bundle = folder / identifier
    bundle.mkdir(parents=True)
    program = command or [*image.config["Entrypoint"], *(arguments or image.config.get("Cmd") or [])]
    variables = [*image.config["Env"], *(f"{name}={value}" for name, value in (environment or {}).items())]
    described = _description(image, program, variables, volumes or {}, user)
    (bundle / "config.json").write_text(json.dumps(described), encoding="utf-8")
    log = bundle / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["runc", "run", identifier], cwd=bundle, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
    container = Container(identifier, image.config.get("StopSignal", ""), process, log)
    try:
        yield container
    finally:
        container.close()


def run(image: Image, folder: Path, *arguments: str, **how: Any) -> tuple[int, str]:
    """Run it to its end, and return its exit code and what it printed."""
    with running(image, folder, *arguments, **how) as container:
        code = container.wait()
        return code, container.log()


def _description(
    image: Image, program: list[str], variables: list[str], volumes: Mapping[str, Path], user: int
) -> dict[str, Any]:
    """The container in the words of the OCI's runtime specification."""
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777", "size=64m"]},
        {
            "destination": "/tmp",
            "type": "tmpfs",
            "source": "tmpfs",
            "options": ["nosuid", "nodev", "mode=1777", "size=512m"],
        },
    ]
    mounts += [
        {"destination": place, "type": "bind", "source": str(folder), "options": ["bind", "rw"]}
        for place, folder in volumes.items()
    ]
    return {
        "ociVersion": "1.0.2",
        "process": {
            "user": {"uid": user, "gid": user},
            "args": program,
            "env": variables,
            "cwd": image.config["WorkingDir"] or "/",
            "capabilities": {each: [] for each in ("bounding", "effective", "permitted")},
            "noNewPrivileges": True,
        },
        "root": {"path": str(image.root), "readonly": True},
        "mounts": mounts,
        "linux": {"namespaces": [{"type": each} for each in ("pid", "ipc", "uts", "mount")]},
    }


def _output(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


SIGTERM_EXIT = 128 + signal.SIGTERM

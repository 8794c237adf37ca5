"""Helpers for processes that tests start: a port to listen on, and how they end."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess

import psutil

from support.zygote import Program

NO_METRICS = {f"WAYBILL_{service}_METRICS_PORT": "0" for service in ("API", "GATEWAY", "WORKER", "OPERATOR")}
"""Services of tests serve no metrics, unless the test wants some: they would take each other's ports."""


def free_port() -> int:
    """A port of loopback that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def dying_with_us(command: list[str]) -> list[str]:
    """The command, killed by the kernel when the thread that starts it ends, as in a test run that is killed."""
    setpriv = shutil.which("setpriv")
    return [setpriv, "--pdeathsig", "KILL", *command] if setpriv else command


def is_alive(pid: int) -> bool:
    """Whether the process still runs; one that only waits to be buried by its parent does not."""
    with contextlib.suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def kill_with_children(process: Program | subprocess.Popen[bytes]) -> None:
    """Kill the process and everything it started, and wait until it has ended."""
    family: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):  # it may end in the meantime
        if process.poll() is None:
            family = [psutil.Process(process.pid)]
            family += family[0].children(recursive=True)
    for each in family:
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()

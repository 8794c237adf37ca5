"""SIGTERM ends a program that is process 1, as it is in a container."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys

import pytest

# A process may signal itself; the kernel treats process 1 the same whoever asks.
PROGRAM = """
import os, signal
{first}
os.kill(os.getpid(), signal.SIGTERM)
print("still here as process", os.getpid())
"""


def run_first(first: str) -> subprocess.CompletedProcess[str]:
    """Run it as process 1 of a namespace of its own."""
    rights = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return subprocess.run(
        ["unshare", *rights, "--pid", "--fork", "--kill-child", sys.executable, "-c", PROGRAM.format(first=first)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture(autouse=True)
def _needs_a_namespace() -> None:
    if shutil.which("unshare") is None:
        pytest.skip("there is no unshare here, which makes process namespaces")
    probe = run_first("")
    if probe.returncode != 0:
        pytest.skip(f"this machine lets nobody make a process namespace: {probe.stderr.strip()}")
    assert probe.stdout == "still here as process 1\n", "the kernel's rule has changed"


def test_process_1_ends_when_it_is_told_to() -> None:
    done = run_first("from waybill.termination import heed_sigterm; heed_sigterm()")
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "")


def test_other_processes_keep_the_default() -> None:
    program = "from waybill.termination import heed_sigterm; heed_sigterm()"
    done = subprocess.run([sys.executable, "-c", PROGRAM.format(first=program)], check=False, timeout=60)
    assert done.returncode == -signal.SIGTERM

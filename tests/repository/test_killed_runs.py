"""A test run that is killed cannot clean up, and yet leaves none of the programs that its tests started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.child_processes import dying_with_us, is_alive
from support.patience import eventually
from support.zygote import TESTS

_RUN = """
import os, subprocess, sys
from pathlib import Path
from support import zygote
from support.child_processes import dying_with_us, is_alive

zygote.PRELOADED = ()
folder = Path(sys.argv[1])
listening = "http.server", "--bind", "127.0.0.1", "0"

def start(shared_imports):
    with (folder / "output").open("ab") as output:
        return zygote.Program(*listening, env=os.environ, output=output, cwd=folder, shared_imports=shared_imports)

quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
command = subprocess.Popen(dying_with_us([sys.executable, "-m", *listening]), **quiet)
print(start(True).pid, start(False).pid, command.pid, zygote._zygote()._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends processes with their parent")
@pytest.mark.parametrize("killed", ["the run", "what forks for it"])
async def test_a_killed_run_leaves_no_program_behind(tmp_path: Path, killed: str) -> None:
    run = subprocess.Popen(
        dying_with_us([sys.executable, "-c", _RUN, str(tmp_path)]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(TESTS)},
    )
    with run:
        assert run.stdout is not None
        pids = [int(pid) for pid in run.stdout.readline().split()]
        forked, fresh, _, zygote = pids
        try:
            assert all(map(is_alive, pids))
            os.kill(run.pid if killed == "the run" else zygote, signal.SIGKILL)
            left = pids if killed == "the run" else [forked, fresh]

            async def gone() -> bool:
                return not any(map(is_alive, left))

            await eventually(gone, what="the end of what was started")
        finally:
            for pid in (*pids, run.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

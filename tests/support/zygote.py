"""Starts service processes for tests by forking one that has imported them already.

Importing a service takes a second of processor time, and the suite starts hundreds of them. What runs is the same
program, in a process of its own with its own environment, folder, output and signals; only the imports are shared.
`Program` looks like `subprocess.Popen` as far as tests use it.

A new interpreter is started from there, too, if a test wants one: what that process started ends with it, and it ends
with the test run, however the run ends.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import ctypes
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from support import trust_store

TESTS = Path(__file__).parent.parent
# Not the pipelines' handlers: importing them registers them, and a test chooses which ones its worker serves.
PRELOADED = (
    "waybill_engine.worker.program",
    "waybill_convert.clients.gateway",
    "waybill_convert.api_part",
    "waybill_api.app",
    "waybill_janitor.__main__",
    "waybill_gateway.__main__",
    "waybill_operator.__main__",
    "waybill_cli.main",
)
_LENGTH = 4
_PR_SET_PDEATHSIG = 1


class Program:
    """A running `python -m MODULE ARGUMENTS`."""

    def __init__(
        self,
        module: str,
        *arguments: str,
        env: Mapping[str, str],
        output: IO[bytes],
        cwd: Path,
        errors: IO[bytes] | None = None,
        shared_imports: bool = True,
    ) -> None:
        """Without `errors`, what it prints there is in `output`, too; without `shared_imports` Python starts anew."""
        self.args = [sys.executable, "-m", module, *arguments]
        wanted = {
            "module": module,
            "arguments": arguments,
            "env": dict(env),
            "cwd": str(cwd),
            "command": None if shared_imports else self.args,
        }
        self.pid, self._exit = _zygote().fork(wanted, output.fileno(), (errors or output).fileno())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and select.select([self._exit], [], [], 0)[0]:
            self._read()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            if not select.select([self._exit], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
            self._read()
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def _read(self) -> None:
        said = os.read(self._exit, 16)
        os.close(self._exit)
        self.returncode = int(said) if said else -signal.SIGKILL


class _Zygote:
    """This process's end of the line to the process that forks."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WAYBILL_")}
        environment["PYTHONPATH"] = str(TESTS)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.zygote", str(theirs.fileno()), *PRELOADED],
            pass_fds=[theirs.fileno()],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        theirs.close()
        self._socket = ours

    def fork(self, wanted: dict[str, Any], output: int, errors: int) -> tuple[int, int]:
        """The new process's id, and a pipe on which its exit code arrives."""
        data = json.dumps(wanted).encode()
        self._socket.sendmsg(
            [len(data).to_bytes(_LENGTH, "big")],
            [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [output, errors]).tobytes())],
        )
        self._socket.sendall(data)
        pid, ends, _, _ = socket.recv_fds(self._socket, 16, 1)
        return int(pid), ends[0]

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


_started: _Zygote | None = None


def _zygote() -> _Zygote:
    global _started
    if _started is None:
        _started = _Zygote()
        atexit.register(_started.close)
    return _started


# What follows runs in the process that forks.


def _serve(line: socket.socket, preloaded: list[str]) -> None:
    for module in preloaded:
        __import__(module)
    trust_store.read_once()
    # What was imported is never garbage. Otherwise each child would look through all of it, and copy it by doing so.
    gc.collect()
    gc.freeze()
    wake, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: os.write(woken, b"."))
    children: dict[int, int] = {}
    while True:
        ready: list[int] = select.select([line.fileno(), wake], [], [])[0]
        if wake in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake, 4096)
            _reap(children)
        if line.fileno() in ready and not _answer(line, children, (wake, woken)):
            for pid in children:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return


def _answer(line: socket.socket, children: dict[int, int], ours: tuple[int, int]) -> bool:
    head, fds, _, _ = socket.recv_fds(line, _LENGTH, 2)
    if not head:
        return False
    while len(head) < _LENGTH:
        head += line.recv(_LENGTH - len(head))
    data = b""
    while len(data) < int.from_bytes(head, "big"):
        data += line.recv(1 << 16)
    exit_read, exit_write = os.pipe2(os.O_CLOEXEC)
    zygote = os.getpid()
    pid = os.fork()
    if pid == 0:
        _end_with(zygote)
        for fd in (line.fileno(), exit_read, exit_write, *ours, *children.values()):
            os.close(fd)
        _become(json.loads(data), *fds)
    children[pid] = exit_write
    socket.send_fds(line, [str(pid).encode()], [exit_read])
    os.close(exit_read)
    for fd in fds:
        os.close(fd)
    return True


def _reap(children: dict[int, int]) -> None:
    for pid, pipe in list(children.items()):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            os.write(pipe, str(os.waitstatus_to_exitcode(status)).encode())
            os.close(children.pop(pid))


def _end_with(parent: int) -> None:
    """Be killed when the parent is, which then cannot do it. Only Linux can do that."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)


def _become(wanted: dict[str, Any], output: int, errors: int) -> None:
    """Be the program that was asked for, and never return."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(output, 1)
        os.dup2(errors, 2)
        os.close(output)
        os.close(errors)
        os.chdir(wanted["cwd"])
        if wanted["command"]:
            for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and the new interpreter would inherit it
                signal.signal(ignored, signal.SIG_DFL)
            os.execve(wanted["command"][0], wanted["command"], wanted["env"])  # noqa: S606 - it is our own interpreter
        os.environ.clear()
        os.environ.update(wanted["env"])
        if zone := wanted["env"].get("TZ"):
            os.environ["TZ"] = zone
        time.tzset()
        for folder in reversed(wanted["env"].get("PYTHONPATH", "").split(os.pathsep)):
            if folder and folder not in sys.path:
                sys.path.insert(0, folder)
        sys.argv = [wanted["module"], *wanted["arguments"]]
        # Imported as a library before; run as a program it is another module.
        sys.modules.pop(f"{wanted['module']}.__main__", None)
        runpy.run_module(wanted["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 0 if leaving.code is None else 1
    except BaseException:  # noqa: BLE001 - as an interpreter does: say it and exit with 1
        sys.excepthook(*sys.exc_info())
    finally:
        with contextlib.suppress(Exception):
            atexit._run_exitfuncs()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])

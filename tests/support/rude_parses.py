"""Parses that misbehave in every way in which a document could make a parser misbehave. The pool must survive them.

They run in sandboxed processes. A test tells the pool to run `support.rude_parses:NAME`.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from waybill_documents.messages import DocumentMessage

Call = Mapping[str, Any]


def obey(call: Call, result: Path) -> dict[str, Any]:
    """Run the function below that the call names."""
    done: dict[str, Any] = globals()[call["do"]](call, result)
    return done


def echo(call: Call, result: Path) -> dict[str, Any]:
    result.write_text(str(call.get("say", "")))
    return {"pid": os.getpid(), "said": call.get("say")}


def segfault(call: Call, result: Path) -> dict[str, Any]:
    ctypes.string_at(0)
    return {}


def abort(call: Call, result: Path) -> dict[str, Any]:
    """Abort, with `megabytes` of memory in use like a library that gets no more."""
    _held = b"x" * (int(call.get("megabytes", 0)) * 1024 * 1024)
    os.abort()


def crash_once(call: Call, result: Path) -> dict[str, Any]:
    """Crash unless the file `marker` exists."""
    if not Path(call["marker"]).exists():
        Path(call["marker"]).touch()
        ctypes.string_at(0)
    return {"pid": os.getpid()}


def spin(call: Call, result: Path) -> dict[str, Any]:
    _started(call)
    while True:
        pass


def sleep(call: Call, result: Path) -> dict[str, Any]:
    """Sleep until the file `until` exists, for `for` seconds, or for ever."""
    _started(call)
    if "until" in call:
        while not Path(call["until"]).exists():
            time.sleep(0.01)
    else:
        time.sleep(float(call.get("for", 3600)))
    return {"pid": os.getpid()}


def sleep_and_crash(call: Call, result: Path) -> dict[str, Any]:
    sleep(call, result)
    return segfault(call, result)


def hold(call: Call, result: Path) -> dict[str, Any]:
    """Take `megabytes` of memory, then sleep."""
    _held = b"x" * (int(call["megabytes"]) * 1024 * 1024)
    return sleep(call, result)


def write_once(call: Call, result: Path) -> dict[str, Any]:
    """Write half an answer, then sleep. Tells whether there was an answer already."""
    found = result.exists()
    result.write_text("half")
    return {**sleep(call, result), "found": found}


def ignore_signals(call: Call, result: Path) -> dict[str, Any]:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGXCPU):
        signal.signal(number, signal.SIG_IGN)
    return spin(call, result)


def hoard(call: Call, result: Path) -> dict[str, Any]:
    held = []
    while True:
        held.append(bytearray(10_000_000))


def tangle(call: Call, result: Path) -> dict[str, Any]:
    """Leave cycles behind that only the garbage collector finds."""
    for _ in range(int(call["megabytes"])):
        ring: list[Any] = [bytearray(1024 * 1024)]
        ring.append(ring)
    return {"pid": os.getpid()}


def swell(call: Call, result: Path) -> dict[str, Any]:
    """Keep memory like a library that leaks."""
    globals().setdefault("_kept", []).append(b"x" * int(call["bytes"]))
    return {"pid": os.getpid()}


def scribble(call: Call, result: Path) -> dict[str, Any]:
    """Write more than the sandbox allows."""
    with result.open("wb") as file:
        while True:
            file.write(b"x" * 1_000_000)


def leave(call: Call, result: Path) -> dict[str, Any]:
    sys.exit(0)


def vanish(call: Call, result: Path) -> dict[str, Any]:
    os._exit(3)


def stumble(call: Call, result: Path) -> dict[str, Any]:
    raise RuntimeError("password=hunter2")


def recurse(call: Call, result: Path) -> dict[str, Any]:
    return recurse(call, result)


def shout(call: Call, result: Path) -> dict[str, Any]:
    """Answer with more than a message can contain."""
    return {"shout": "x" * 10_000_000}


def chatter(call: Call, result: Path) -> dict[str, Any]:
    os.write(1, b"noise\n" * 100_000)
    return {"pid": os.getpid()}


def forge(call: Call, result: Path) -> dict[str, Any]:
    """Write into the channel as if it were the service's own code."""
    order = json.loads(sys.argv[1])
    os.write(order["channel"], b"\xff\xff\xff\xff nonsense")
    return {}


def hang_up(call: Call, result: Path) -> dict[str, Any]:
    """Close the channel and run on."""
    os.close(json.loads(sys.argv[1])["channel"])
    return sleep(call, result)


def spawn(call: Call, result: Path) -> dict[str, Any]:
    subprocess.run(["true"], check=True)
    return {"escaped": True}


def fork(call: Call, result: Path) -> dict[str, Any]:
    """Leave a process behind that would run for ever."""
    if (pid := os.fork()) == 0:
        time.sleep(3600)
    _started({**call, "pid": pid})
    return sleep({}, result)


def connect(call: Call, result: Path) -> dict[str, Any]:
    with socket.create_connection(("127.0.0.1", call["port"]), timeout=5):
        return {"escaped": True}


def read(call: Call, result: Path) -> dict[str, Any]:
    return {"text": Path(call["path"]).read_text()[:100]}


def write(call: Call, result: Path) -> dict[str, Any]:
    Path(call["path"]).write_text("escaped")
    return {"escaped": True}


def environment(call: Call, result: Path) -> dict[str, Any]:
    return dict(os.environ)


def _started(call: Call) -> None:
    """Tell the test that the parse has started, with a file that contains the process id."""
    if "started" in call:
        half = Path(str(call["started"]) + ".half")
        half.write_text(str(call.get("pid", os.getpid())))
        half.rename(call["started"])


def _said(key: str) -> dict[str, Any]:
    """What a problem document says with a message of the document library."""
    message = DocumentMessage(key)
    return {"detail": message.english, "key": message.key, "params": message.params}


def as_told(call: Call, result: Path) -> dict[str, Any]:
    """Do what the document says, such as `%PDF-{"do": "segfault"}`, and answer with the call."""
    content = Path(call["source"]).read_bytes()
    told = json.loads(content.removeprefix(b"%PDF-").split(b"\n")[0]) if content.startswith(b"%PDF-{") else {}
    note: dict[str, Any] = {}
    if "do" in told:
        note = globals()[told["do"]](told, result)
    if "fault" in told:
        problem = {**call["problem"], **_said("pdf.damaged"), "fault": told["fault"], "findings": []}
        result.write_text(json.dumps(problem))
        return {"status": 422, "fault": told["fault"], "stages": {"words": 1.25}}
    if "mapping_fault" in told:
        return {"status": 400, **_said(told["mapping_fault"])}
    answer = json.dumps({**call, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(), "note": note})
    result.write_text(answer + " " * int(told.get("padding", 0)))
    return {"status": 200, "stages": {"words": 12.345, "tables": 4.0, "ZqSecret": 1.0}}

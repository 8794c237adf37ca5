"""`python -m waybill_gateway.sandbox`: a parser. It restricts itself, then parses documents until it is killed.

Its argument names a `module:function`. `function(call, result)` reads the document that the call names, writes its
answer to the file `result` and returns a short note about it. If the module has `prepare(options)`, that runs first.
"""

from __future__ import annotations

import importlib
import json
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from waybill.tracebacks import as_text, told
from waybill_gateway.sandbox import channel, garbage_collection, landlock, limits

Parse = Callable[[Mapping[str, Any], Path], Mapping[str, Any]]

_SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/null", "/dev/urandom")
_LONGEST_TRACEBACK = 20_000


def main() -> None:
    order = json.loads(sys.argv[1])
    limits.end_with(order["parent"])
    connection = socket.socket(fileno=order["channel"])
    memory = limits.Memory()
    limits.apply(limits.ProcessLimits(**order["limits"]))
    parse = _prepared(order["function"], order["options"])
    garbage_collection.only_between_documents()
    readable = [*sys.path, sys.prefix, sys.base_prefix, *_SYSTEM, *order["readable"]]
    version = landlock.confine(
        readable=(Path(path) for path in readable if path), writable=(Path(path) for path in order["writable"])
    )
    connection.sendall(channel.pack({"outcome": "ready", "landlock": version}))
    while (request := channel.receive(connection)) is not None:
        # From here on, the document may be to blame if we die, but not for what was used before it.
        connection.sendall(channel.pack({"outcome": "begun", **asdict(limits.Usage.so_far())}))
        limits.allow_cpu(request["seconds"])
        reply = _answer(parse, request["call"], Path(request["result"]))
        garbage_collection.collect()
        connection.sendall(channel.pack({**reply, "resident": memory.resident()}))


def _prepared(function: str, options: Mapping[str, Any]) -> Parse:
    module_name, _, name = function.partition(":")
    module = importlib.import_module(module_name)
    if prepare := getattr(module, "prepare", None):
        prepare(options)
    parse: Parse = getattr(module, name)
    return parse


def _answer(parse: Parse, call: Mapping[str, Any], result: Path) -> dict[str, Any]:
    try:
        return {"outcome": "done", "note": dict(parse(call, result))}
    except MemoryError:
        return {"outcome": "memory"}
    except Exception as error:  # noqa: BLE001 - the service logs it and decides what to do
        text = as_text(told(error))[-_LONGEST_TRACEBACK:]
        return {"outcome": "broken", "errno": getattr(error, "errno", None), "traceback": text}


if __name__ == "__main__":
    main()

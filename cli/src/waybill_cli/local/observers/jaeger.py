"""How to run Jaeger (version 2) here: it receives traces over OTLP, keeps them for three days, and shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from waybill.files.private import write_private

_KEPT = "72h"


def jaeger_command(program: str, folder: Path, *, port: int, otlp_port: int) -> list[str]:
    """Write its configuration into the folder, and return the command."""
    configuration = folder / "jaeger.yml"
    write_private(configuration, json.dumps(_configuration(folder / "jaeger", port, otlp_port), indent=2) + "\n")
    return [program, f"--config=file:{configuration}"]


def _configuration(data: Path, port: int, otlp_port: int) -> dict[str, Any]:
    badger = {
        "directories": {"keys": str(data / "keys"), "values": str(data / "values")},
        "ephemeral": False,
        "ttl": {"spans": _KEPT},
    }
    query = {
        "storage": {"traces": "local"},
        "http": {"endpoint": f"127.0.0.1:{port}"},
        "grpc": {"endpoint": "127.0.0.1:0"},  # it insists on one; nobody uses it
        "enable_tracing": False,  # it would look for a collector for its own traces
    }
    return {
        "service": {
            "extensions": ["jaeger_storage", "jaeger_query"],
            "pipelines": {
                "traces": {"receivers": ["otlp"], "processors": ["batch"], "exporters": ["jaeger_storage_exporter"]}
            },
            "telemetry": {"metrics": {"level": "none"}, "logs": {"level": "warn"}},
        },
        "extensions": {"jaeger_storage": {"backends": {"local": {"badger": badger}}}, "jaeger_query": query},
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": f"127.0.0.1:{otlp_port}"}}}},
        "processors": {"batch": {"timeout": "1s"}},
        "exporters": {"jaeger_storage_exporter": {"trace_storage": "local"}},
    }

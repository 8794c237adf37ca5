"""A real Prometheus with our rules, asked over its API. Debian's package `prometheus` has both programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.child_processes import dying_with_us, free_port
from support.patience import eventually

PROMETHEUS = shutil.which("prometheus")
PROMTOOL = shutil.which("promtool")


def needs(program: str | None) -> str:
    if program is None:
        pytest.skip("there is no Prometheus (Debian's package prometheus)")
    return program


class Prometheus:
    """A running server."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._http = httpx.AsyncClient(base_url=url, trust_env=False, timeout=30)

    async def query(self, expression: str) -> list[dict[str, Any]]:
        """What the expression is now. Fails if Prometheus cannot evaluate it."""
        answer = (await self._http.post("/api/v1/query", data={"query": expression})).json()
        assert answer["status"] == "success", f"{answer.get('error')} in {expression}"
        result = answer["data"]["result"]
        return result if answer["data"]["resultType"] == "vector" else [result]

    async def get(self, path: str) -> Any:
        answer = await self._http.get(path)
        answer.raise_for_status()
        return answer.json()["data"]

    async def targets(self) -> dict[str, str]:
        """The health of each scrape job."""
        return {each["labels"]["job"]: each["health"] for each in (await self.get("/api/v1/targets"))["activeTargets"]}

    async def close(self) -> None:
        await self._http.aclose()


@contextlib.asynccontextmanager
async def prometheus(folder: Path, targets: Mapping[str, str], rules: Path) -> AsyncIterator[Prometheus]:
    """Scrape these targets (`host:port` by the name of the job) every second, until the end of the block."""
    program = needs(PROMETHEUS)
    folder.mkdir(parents=True, exist_ok=True)
    configuration = folder / "prometheus.yml"
    configuration.write_text(  # JSON is YAML
        json.dumps(
            {
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": [str(rules)],
                "scrape_configs": [
                    {"job_name": job, "static_configs": [{"targets": [target]}]} for job, target in targets.items()
                ],
            }
        )
    )
    port = free_port()
    command = [
        program,
        f"--config.file={configuration}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(dying_with_us(command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    server = Prometheus(f"http://127.0.0.1:{port}")

    async def answers() -> bool:
        assert process.poll() is None, (folder / "prometheus.log").read_text()
        with contextlib.suppress(httpx.TransportError):
            return (await server._http.get("/-/ready")).status_code == 200
        return False

    try:
        await eventually(answers, every=0.05, what="Prometheus is ready")
        yield server
    finally:
        await server.close()
        process.terminate()
        await asyncio.to_thread(process.wait, 30)

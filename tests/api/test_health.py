"""The API says truthfully whether it is alive and ready, and every refusal is a problem document."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest
from fastapi import FastAPI

from support.api_fixtures import Serve
from support.api_server import Api, serving, upload
from support.child_processes import dying_with_us, free_port
from support.forked import Forked
from support.patience import eventually
from support.server import embedded
from support.sick_gateway import answering, sick_gateway
from waybill.config import CommonSettings
from waybill.db import Database
from waybill.db.migrations import upgrade
from waybill.storage import LocalStorage
from waybill.storage.owner_mark import MarkedStorage


@pytest.fixture
def client(api: Api) -> httpx.AsyncClient:
    return api.client()


async def test_alive_and_ready(client: httpx.AsyncClient) -> None:
    assert (await client.get("/livez")).json() == {"status": "alive"}
    assert (await client.get("/readyz")).json() == {"status": "ready"}
    health = (await client.get("/api/healthz")).json()
    assert health["status"] == "ok"
    assert health["checks"] == {"database": "ok", "schema": "ok", "storage": "ok"}


async def test_a_gateway_that_does_not_trust_us_is_shown_and_we_stay_ready(serve: Serve) -> None:
    refusal = b'{"detail": "WAYBILL_GATEWAY_SECRET must be the same."}'
    async with sick_gateway(answering(401, refusal)) as gateway, serve(gateway_url=gateway.url) as api:
        client = api.client()
        ready = await client.get("/readyz")
        assert ready.status_code == 200
        assert ["WAYBILL_GATEWAY_SECRET" in each for each in ready.json()["misconfigured"]] == [True]
        assert "WAYBILL_GATEWAY_SECRET" in (await client.get("/api/healthz")).json()["checks"]["settings"]


async def test_not_ready_on_another_schema_says_what_to_run(client: httpx.AsyncClient, database_url: str) -> None:
    connection = await asyncpg.connect(database_url)
    await connection.execute("DELETE FROM schema_revisions")
    await connection.close()
    for path in ("/readyz", "/api/healthz"):
        answer = await client.get(path)
        assert_problem(answer, 503, "NOT_READY")
        assert "waybill migrate" in answer.json()["detail"]
    assert (await client.get("/livez")).status_code == 200, "restarting would not help"


async def test_not_ready_while_the_storage_is_not_mounted_and_nothing_is_accepted(
    serve: Serve, db: Database, folder: Path, tmp_path: Path
) -> None:
    async with serve(MarkedStorage(LocalStorage(folder), db, strict=True)) as api:
        client = await api.browser()
        assert (await client.get("/readyz")).status_code == 200
        folder.rename(tmp_path / "away")
        folder.mkdir()
        assert_problem(await client.get("/readyz"), 503, "IO_ERROR")
        answer = await upload(client)
        assert_problem(answer, answer.status_code, "IO_ERROR")
        assert answer.status_code >= 500
        assert [one for one in folder.rglob("*") if one.is_file()] == []
        shutil.rmtree(folder)
        (tmp_path / "away").rename(folder)
        assert (await client.get("/readyz")).status_code == 200
        assert (await upload(client)).status_code == 201


async def test_not_ready_while_postgres_is_away_and_ready_again_by_itself(tmp_path: Path) -> None:
    with embedded() as server:
        await upgrade(server.url)
        settings: dict[str, Any] = {"database_url": server.url}
        db = await Database.connect(CommonSettings.model_validate(settings))
        async with serving(settings, db, tmp_path) as api:
            client = api.client()
            assert (await client.get("/readyz")).status_code == 200
            server.stop("immediate")
            answer = await client.get("/readyz")
            assert_problem(answer, 503, "DB_UNAVAILABLE")
            assert str(server.port) not in answer.text, "where our database is, is nobody's business"
            assert_problem(await client.get("/api/jobs"), 503, "DB_UNAVAILABLE")
            server.start()

            async def ready() -> bool:
                return (await client.get("/readyz")).status_code == 200

            await eventually(ready, what="readiness after Postgres came back")
            await api.listening()
        await db.close()


async def test_not_ready_while_nothing_can_be_stored(serve: Serve, folder: Path) -> None:
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder should be")
    async with serve() as api:
        answer = await api.client().get("/readyz")
        assert_problem(answer, 503, "IO_ERROR")
        assert str(folder) not in answer.text
        assert (await api.client().get("/livez")).status_code == 200


async def test_refusals_are_problem_documents(client: httpx.AsyncClient) -> None:
    assert_problem(await client.get("/no/such/page"), 404, "NOT_FOUND")
    answer = await client.post("/livez")
    assert_problem(answer, 405, "VALIDATION_ERROR")
    assert answer.headers["allow"] == "GET, HEAD"


async def test_a_surprise_is_a_problem_document_without_our_secrets(api: Api) -> None:
    app = api.server.config.app
    assert isinstance(app, FastAPI)

    @app.get("/surprise")
    async def surprise() -> None:
        raise RuntimeError("password=hunter2")

    answer = await api.client().get("/surprise")
    assert_problem(answer, 500, "UNKNOWN")
    assert "hunter2" not in answer.text


def assert_problem(answer: httpx.Response, status: int, code: str) -> None:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    problem = answer.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert (problem["status"], problem["code"]) == (status, code)


async def test_the_process_says_it_is_ready_and_stops_cleanly(database_url: str, tmp_path: Path) -> None:
    port = free_port()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notices:
        # In the abstract namespace where there is one: the path of a temporary folder may be too long.
        name = f"waybill-test-{os.getpid()}"
        notices.bind(f"\0{name}" if sys.platform == "linux" else str(tmp_path / "s"))
        notices.settimeout(30)
        environment = {
            **os.environ,
            "WAYBILL_DATABASE_URL": database_url,
            "WAYBILL_API_PORT": str(port),
            "WAYBILL_GATEWAY_URL": f"http://127.0.0.1:{free_port()}",  # somebody may run a gateway on the usual port
            "WAYBILL_HOME": str(tmp_path / "home"),
            "NOTIFY_SOCKET": f"@{name}" if sys.platform == "linux" else str(tmp_path / "s"),
        }
        process = subprocess.Popen(
            dying_with_us([sys.executable, "-m", "waybill_api"]), env=environment, stderr=subprocess.PIPE
        )
        try:
            assert notices.recv(100) == b"READY=1"
            answer = httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=60, trust_env=False)
            assert answer.json() == {"status": "ready"}
            process.send_signal(signal.SIGTERM)
            _, errors = process.communicate(timeout=30)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == 0, errors.decode()
    assert b"Traceback" not in errors


def test_a_bad_configuration_exits_with_2(tmp_path: Path) -> None:
    wrong = {"WAYBILL_API_PORT": "many", "WAYBILL_MAX_UPLOAD_MB": "much"}
    code, said = Forked("waybill_api", folder=tmp_path, **wrong).ended()
    assert code == 2
    assert "WAYBILL_API_PORT" in said
    assert "WAYBILL_DATABASE_URL" in said
    assert "WAYBILL_MAX_UPLOAD_MB" in said, "a pipeline's setting is checked with the rest"


def test_an_empty_database_is_refused_with_the_command_to_run(empty_database_url: str, tmp_path: Path) -> None:
    code, said = Forked("waybill_api", folder=tmp_path, WAYBILL_DATABASE_URL=empty_database_url).ended()
    assert code == 1
    assert "waybill migrate" in said

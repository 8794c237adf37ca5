"""The servers for development run without rights, and do what `k8s/dev` and the chart expect of the official images.

Only in `make test-images`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import asyncpg
import pytest
from pydantic import SecretStr

from support.child_processes import free_port
from support.containers import Container, Image, running, volume
from support.patience import wait_until
from waybill.storage import open_storage
from waybill.storage.factory import StorageAccess

pytestmark = [pytest.mark.images, pytest.mark.timeout(1800)]

POSTGRES, NOBODY = 999, 65534


@contextmanager
def postgres(image: Image, folder: Path, volumes: dict[str, Path]) -> Iterator[tuple[Container, str]]:
    port = free_port()
    settings = {
        "POSTGRES_USER": "waybill",
        "POSTGRES_PASSWORD": "a pass'word",
        "POSTGRES_DB": "documents",
        "PGDATA": "/var/lib/postgresql/data/pgdata",
    }
    arguments = ("-c", f"port={port}", "-c", "max_connections=40")
    with running(image, folder, *arguments, environment=settings, volumes=volumes, user=POSTGRES) as container:
        ready = ("pg_isready", "--host=127.0.0.1", f"--port={port}", "--username=waybill", "--dbname=documents")
        wait_until(lambda: container.execute(*ready).returncode == 0, "Postgres is ready")
        yield container, f"postgresql://waybill:a%20pass'word@127.0.0.1:{port}/documents"


async def test_postgres_keeps_its_data_and_stops_though_clients_are_connected(
    dev_images: dict[str, Image], tmp_path: Path
) -> None:
    places = {"/var/lib/postgresql/data": "data", "/var/run/postgresql": "run"}
    volumes = {place: volume(tmp_path / name, POSTGRES) for place, name in places.items()}
    with postgres(dev_images["postgres"], tmp_path / "first", volumes) as (container, url):
        connection = await asyncpg.connect(url)
        await connection.execute("CREATE TABLE kept AS SELECT 1 AS one")
        assert await connection.fetchval("SHOW max_connections") == "40"
        assert container.stop() == 0, container.log()
    with postgres(dev_images["postgres"], tmp_path / "second", volumes) as (container, url):
        connection = await asyncpg.connect(url)
        assert await connection.fetchval("SELECT one FROM kept") == 1
        await connection.close()
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(url.replace("pass", "other"))


def test_postgres_without_a_password_says_what_is_missing(dev_images: dict[str, Image], tmp_path: Path) -> None:
    with running(dev_images["postgres"], tmp_path, user=POSTGRES) as container:
        assert container.wait() != 0
        assert "Set POSTGRES_PASSWORD" in container.log()


async def test_the_s3_store_has_its_bucket_and_stores_documents(dev_images: dict[str, Image], tmp_path: Path) -> None:
    port = free_port()
    environment = {"S3_PORT": str(port), "S3_BUCKET": "documents"}
    with running(dev_images["s3"], tmp_path, environment=environment) as container:
        wait_until(lambda: "listening" in container.log(), "the store listens")
        url = f"s3://documents/waybill?endpoint=http://127.0.0.1:{port}&region=us-east-1"
        storage = open_storage(url, StorageAccess("any", SecretStr("key")))
        await storage.put("a/key", b"a document")
        assert await storage.get("a/key") == b"a document"
        assert container.stop() == 0, container.log()


def test_prometheus_starts_with_a_configuration_of_ours(dev_images: dict[str, Image], tmp_path: Path) -> None:
    port = free_port()
    configuration = tmp_path / "prometheus"
    configuration.mkdir()
    (configuration / "prometheus.yml").write_text("global: {scrape_interval: 5s}\n", encoding="utf-8")
    arguments = ("--config.file=/etc/waybill/prometheus.yml", "--storage.tsdb.path=/prometheus")
    listen = f"--web.listen-address=127.0.0.1:{port}"
    volumes = {"/etc/waybill": configuration, "/prometheus": volume(tmp_path / "data", NOBODY)}
    with running(dev_images["prometheus"], tmp_path, *arguments, listen, volumes=volumes, user=NOBODY) as container:
        wait_until(lambda: "Server is ready" in container.log(), "Prometheus is ready")
        with urlopen(f"http://127.0.0.1:{port}/api/v1/status/config", timeout=60) as answer:
            assert "scrape_interval: 5s" in json.load(answer)["data"]["yaml"]
        assert container.stop() == 0, container.log()

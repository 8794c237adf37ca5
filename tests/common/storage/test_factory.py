"""A URL leads to the storage it names, and a service gets the one it is configured with."""

from __future__ import annotations

import json
import subprocess
import sys
import traceback
import uuid
from pathlib import Path

import pytest
from pydantic import SecretStr

from support.s3 import KEY_ID, SECRET, Bucket
from waybill.config import CommonSettings
from waybill.errors import IoFailure
from waybill.ids import made_at, new_id
from waybill.storage import LocalStorage, open_storage, storage_of, upload_key
from waybill.storage.factory import StorageAccess
from waybill.storage.keys import checked
from waybill_engine.artefacts import artefact_key

DATABASE = "postgresql://u@h/d"


async def test_a_path_or_a_file_url_is_a_folder(tmp_path: Path) -> None:
    await open_storage(tmp_path / "a").put("k", b"1")
    await open_storage(str(tmp_path / "a")).put("l", b"2")
    assert await open_storage(f"file://{tmp_path}/a").get("k") == b"1"
    assert sorted([each.key async for each in open_storage(tmp_path / "a").list()]) == ["k", "l"]


async def test_a_service_stores_in_its_home_unless_told_otherwise(tmp_path: Path) -> None:
    settings = CommonSettings.model_validate({"database_url": DATABASE, "home": str(tmp_path)})
    storage = storage_of(settings)
    assert isinstance(storage, LocalStorage)
    await storage.put("k", b"x")
    assert (tmp_path / "storage" / "k").read_bytes() == b"x"


async def test_a_service_reaches_its_bucket_with_the_credentials_of_its_settings(bucket: Bucket) -> None:
    url = f"s3://{bucket.name}/waybill?endpoint={bucket.server}"
    given = {"storage_url": url, "storage_key_id": KEY_ID, "storage_secret": SECRET}
    settings = CommonSettings.model_validate({"database_url": DATABASE, **given})
    storage = storage_of(settings)
    await storage.put("k", b"x")
    assert bucket.objects() == ["waybill/k"]
    assert repr(storage) == f"ObjectStorage({url!r})"


@pytest.mark.parametrize("url", ["s3://bucket/prefix", "gs://bucket/prefix", "az://container/prefix?account=acme"])
def test_every_cloud_can_be_opened_without_touching_it(url: str) -> None:
    assert repr(open_storage(url)) == f"ObjectStorage({url!r})"


@pytest.mark.parametrize(
    ("url", "secret"),
    [
        ("az://container", None),
        ("az://container?account=acme", "hunter2!"),
        ("gs://bucket", "hunter2"),
        ("gs://bucket", '{"private_key": 7, "client_email": "hunter2"}'),
    ],
)
def test_what_cannot_be_opened_says_so_without_showing_its_secret(url: str, secret: str | None) -> None:
    with pytest.raises(IoFailure, match="cannot be opened") as refused:
        open_storage(url, StorageAccess(secret=SecretStr(secret) if secret else None))
    assert "hunter2" not in "".join(traceback.format_exception(refused.value))


def test_a_folder_needs_no_object_store_library(tmp_path: Path) -> None:
    script = (
        "import sys; from waybill.storage import open_storage\n"
        "open_storage(sys.argv[1]); print('obstore' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_keys_say_when_the_job_was_made_and_which_run_it_was() -> None:
    job = new_id()
    day = f"{made_at(job):%y/%m/%d}"
    assert upload_key(job) == f"uploads/{day}/{job}.pdf"
    worker = uuid.UUID("01890000-0000-7000-8000-0123456789ab")
    assert artefact_key(job, 7, worker, "xml") == f"results/{day}/{job}/7-0123456789ab.xml"
    assert artefact_key(job, 7, worker, "provenance.json") == f"results/{day}/{job}/7-0123456789ab.provenance.json"
    assert checked(upload_key(uuid.UUID(int=0))) == "uploads/70/01/01/00000000-0000-0000-0000-000000000000.pdf"


# In a process of its own, whose highest memory is this one object's.
_MEMORY = """
import asyncio, json, os, resource, sys
from pydantic import SecretStr
from waybill.storage import open_storage
from waybill.storage.factory import StorageAccess

def highest():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

async def main():
    storage = open_storage(sys.argv[1], StorageAccess("id", SecretStr("secret")))
    async def incoming(size):
        for _ in range(size // 65536):
            yield bytes(65536)
    async def once(size):
        stored = await storage.put("k", incoming(size))
        total = 0
        async for chunk in storage.stream("k"):
            total += len(chunk)
        assert total == stored.bytes == size
    await once(65536)
    before = highest()
    await once(50 * 2**20)
    print(json.dumps(highest() - before), flush=True)
    os._exit(0)  # threads of the store's library may still run, and one that meets a dying interpreter aborts

asyncio.run(main())
"""


@pytest.mark.parametrize(("kind", "most"), [("local", 8), ("s3", 24)])
def test_a_large_object_needs_little_memory(kind: str, most: int, tmp_path: Path, bucket: Bucket) -> None:
    url = str(tmp_path) if kind == "local" else f"s3://{bucket.name}?endpoint={bucket.server}"
    run = subprocess.run([sys.executable, "-c", _MEMORY, url], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) < most * 2**20

"""The convert pipeline's library, on real Postgres and without HTTP."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from support.api_server import Converter, pdf
from support.engine import Connect
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.security import Principal, of_session
from waybill.storage import LocalStorage, upload_key
from waybill_convert.download_service import Downloads
from waybill_convert.kinds import CONVERT_PDF
from waybill_convert.models import Upload
from waybill_convert.service import Conversions
from waybill_convert.upload_service import Uploads
from waybill_convert.views import Uploaded
from waybill_engine import JobKind


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path / "storage")


@pytest.fixture
def conversions(db: Database, storage: LocalStorage) -> Conversions:
    return Conversions(db, storage, Subscriptions(db))


@pytest.fixture
def downloads(db: Database) -> Downloads:
    return Downloads(db)


@pytest.fixture
def me() -> Principal:
    return of_session(new_id())


@pytest.fixture
async def hot(connect: Connect) -> Connection:
    return await connect()


@pytest.fixture
async def converter(connect: Connect, storage: LocalStorage) -> Converter:
    return await Converter.start(await connect(), storage)


def uploads_of(conversions: Conversions, kind: JobKind = CONVERT_PDF) -> Uploads:
    """The uploads of the same process."""
    changes = conversions._changes
    return Uploads(conversions._database, conversions._storage, changes, conversions.outlook, kind=kind)


async def put(
    conversions: Conversions, who: Principal, content: bytes | None = None, *, kind: JobKind = CONVERT_PDF
) -> Uploaded:
    """Upload a document, as the API does once it has it."""
    data = pdf() if content is None else content
    job_id = new_id()
    stored = await conversions._storage.put(upload_key(job_id), data)
    upload = Upload(job_id, stored.key, "a.pdf", len(data), hashlib.sha256(data).hexdigest(), "pt_simon_invoice_v1")
    return await uploads_of(conversions, kind).upload(who, upload)

"""A browser that signs in leaves its session behind only if everything in it went along."""

from __future__ import annotations

from pathlib import Path

import pytest

from waybill.config import ApiSettings
from waybill.db import Database
from waybill.security import Principal
from waybill.storage import LocalStorage
from waybill.web import ApiPart, Context


async def takes(_context: Context, _session: str, _principal: Principal) -> bool:
    return True


async def refuses(_context: Context, _session: str, _principal: Principal) -> bool:
    return False


TAKES, REFUSES, SILENT = ApiPart((), adopt=takes), ApiPart((), adopt=refuses), ApiPart(())


@pytest.mark.parametrize(
    ("parts", "all_of_it"),
    [([TAKES], True), ([TAKES, TAKES], True), ([TAKES, REFUSES], False), ([TAKES, SILENT], False)],
)
async def test_a_session_is_left_only_if_every_pipeline_took_its_things(
    db: Database, tmp_path: Path, parts: list[ApiPart], all_of_it: bool
) -> None:
    settings = ApiSettings.model_validate({"database_url": db.url})
    context = Context(settings, db, LocalStorage(tmp_path), parts)
    assert await context.adopt("session:x", Principal("tenant:acme", "acme")) is all_of_it

"""How often a conversion is retried is a setting, whoever enqueues it."""

from __future__ import annotations

import pytest

from convert.conftest import put
from waybill.db.database import Connection
from waybill.security import Principal
from waybill_convert.kinds import CONVERT_PDF, KINDS, with_retries
from waybill_convert.service import Conversions
from waybill_engine import NewJob, enqueue, kind_named, register_kinds, registry


@pytest.mark.parametrize("retries", [0, 7])
async def test_an_uploaded_document_is_retried_as_often_as_the_setting_says(
    conversions: Conversions, hot: Connection, me: Principal, retries: int
) -> None:
    await put(conversions, me, kind=with_retries(CONVERT_PDF, retries))
    assert await hot.fetchval("SELECT max_attempts FROM jobs") == retries + 1


@pytest.mark.parametrize("retries", [0, 7])
async def test_and_so_is_one_that_is_enqueued_by_the_name_of_its_kind(
    hot: Connection, monkeypatch: pytest.MonkeyPatch, retries: int
) -> None:
    monkeypatch.setattr(registry, "_configured", {})  # as in a process that has just started
    monkeypatch.setenv("WAYBILL_CONVERT_RETRIES", str(retries))
    register_kinds(KINDS)
    await enqueue(hot, NewJob(kind_named("convert_pdf"), "acme"))
    assert await hot.fetchval("SELECT max_attempts FROM jobs") == retries + 1

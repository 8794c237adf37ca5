"""How often a conversion is retried is a setting."""

from __future__ import annotations

import pytest

from convert.conftest import put
from waybill.changes import Subscriptions
from waybill.db import Database
from waybill.db.database import Connection
from waybill.security import Principal
from waybill.storage import LocalStorage
from waybill_convert.service import Conversions


@pytest.mark.parametrize("retries", [0, 7])
async def test_an_uploaded_document_is_retried_as_often_as_the_setting_says(
    db: Database, storage: LocalStorage, hot: Connection, me: Principal, retries: int
) -> None:
    conversions = Conversions(db, storage, Subscriptions(db), retries=retries)
    await put(conversions, me)
    assert await hot.fetchval("SELECT max_attempts FROM jobs") == retries + 1

"""How often a conversion is retried is a setting."""

from __future__ import annotations

import pytest

from convert.conftest import put
from waybill.db.database import Connection
from waybill.security import Principal
from waybill_convert.kinds import convert_kind
from waybill_convert.service import Conversions


@pytest.mark.parametrize("retries", [0, 7])
async def test_an_uploaded_document_is_retried_as_often_as_the_setting_says(
    conversions: Conversions, hot: Connection, me: Principal, retries: int
) -> None:
    await put(conversions, me, kind=convert_kind(retries))
    assert await hot.fetchval("SELECT max_attempts FROM jobs") == retries + 1

"""Results are handed out to their owner, once they are there and as long as they are."""

from __future__ import annotations

import pytest

from convert.conftest import put
from support.api_server import Converter
from waybill.errors import Conflict, Expired, Forbidden, NotFound, NotReady
from waybill.ids import new_id
from waybill.security import Principal, of_session
from waybill_convert.download_service import Downloads
from waybill_convert.service import Conversions


async def test_results_by_whom_and_when(
    conversions: Conversions, downloads: Downloads, me: Principal, converter: Converter
) -> None:
    job = (await put(conversions, me)).job.id
    with pytest.raises(NotReady):
        await downloads.result(me.owner, job)
    await converter.finish_all()
    assert (await downloads.result(me.owner, job)).media_type == "application/xml"
    with pytest.raises(Forbidden):
        await downloads.result(of_session(new_id()).owner, job)
    with pytest.raises(NotFound):
        await downloads.provenance(of_session(new_id()).owner, job)
    with pytest.raises(Conflict):
        await conversions.retry(me.owner, job)
    await converter.connection.execute("DELETE FROM job_artefacts")
    with pytest.raises(Expired):
        await downloads.result(me.owner, job)

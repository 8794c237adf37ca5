"""A document that its owner has already is not converted again; what a browser uploaded goes along when it signs in."""

from __future__ import annotations

import asyncio

from convert.conftest import put, uploads_of
from support.api_server import Converter, pdf
from waybill.db.database import Connection
from waybill.ids import new_id
from waybill.security import Principal, of_tenant
from waybill.storage import LocalStorage
from waybill_convert.service import Conversions
from waybill_convert.status import Status


async def test_signing_in_while_conversions_end(
    conversions: Conversions, me: Principal, converter: Converter, hot: Connection
) -> None:
    for _ in range(20):
        await put(conversions, me)
    leases = await converter.take()
    team = of_tenant("acme", me.permissions, new_id())

    async def end() -> None:
        for lease in leases:
            await converter.finish(lease)

    _, adopted = await asyncio.gather(end(), uploads_of(conversions).adopt(me.owner, team))
    assert adopted == 20
    assert (await conversions.listing(me.owner)).total == 0
    assert (await conversions.listing(team.owner)).counts[Status.COMPLETE] == 20
    assert await uploads_of(conversions).adopt(me.owner, team) == 0


async def test_what_is_about_to_stop_is_not_given_out_again(
    conversions: Conversions, me: Principal, converter: Converter
) -> None:
    content = pdf()
    job = (await put(conversions, me, content)).job.id
    await converter.take()
    assert (await put(conversions, me, content)).deduped_from == job
    assert (await conversions.cancel(me.owner, job)).stopping
    assert (await put(conversions, me, content)).deduped_from is None


async def test_a_job_that_is_deleted_meanwhile_is_not_given_out_again(
    conversions: Conversions, me: Principal, storage: LocalStorage
) -> None:
    content = pdf()
    for _ in range(8):
        job = (await put(conversions, me, content)).job.id
        again, _ = await asyncio.gather(put(conversions, me, content), conversions.delete(me.owner, job))
        if again.deduped_from is None:  # the deletion was first
            await conversions.delete(me.owner, again.job.id)
    assert (await conversions.listing(me.owner)).total == 0
    assert [listed async for listed in storage.list()] == []

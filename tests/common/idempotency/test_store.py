"""Asked twice, done once, answered twice: whoever asks at the same moment, and whoever dies in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.clock import Clock
from waybill.errors import IdempotencyConflict, Refused
from waybill.idempotency import (
    Begun,
    HolderReplaced,
    KeyRecord,
    KeyState,
    begin,
    fail,
    find,
    fingerprint,
    finish,
    forget,
    purge,
    should_reprocess,
)

Connection = Any
Connect = Callable[[], Awaitable[Connection]]

REQUEST = fingerprint("POST", "/api/upload", b"invoice")
OTHER = fingerprint("POST", "/api/upload", b"another")
DAY = 24 * 3600.0
STALE = 300.0


async def ask(connection: Connection, *, tenant: str = "acme", key: str = "k", what: str = REQUEST) -> Begun:
    return await begin(connection, tenant=tenant, key=key, fingerprint=what)


async def database_time(connection: Connection) -> datetime:
    now = await connection.fetchval("SELECT now()")
    assert isinstance(now, datetime)
    return now


async def test_the_first_does_the_work_and_the_second_gets_its_answer(connect: Connect) -> None:
    connection = await connect()
    first = await ask(connection)
    assert first.held
    assert first.record.attempt == 1
    await finish(connection, first.record, {"job_id": "0197", "pages": [1, 2], "name": "Rechnung März"})

    second = await ask(connection)
    assert not second.held
    assert second.record.state is KeyState.DONE
    assert second.record.answer == {"job_id": "0197", "pages": [1, 2], "name": "Rechnung März"}


async def test_while_the_first_is_at_it_the_second_is_told_so(connect: Connect) -> None:
    connection = await connect()
    await ask(connection)
    second = await ask(connection)
    assert not second.held
    assert second.record.state is KeyState.IN_PROGRESS
    assert second.record.answer is None


async def test_of_many_at_the_same_moment_exactly_one_does_the_work(connect: Connect) -> None:
    connections = [await connect() for _ in range(12)]
    for key in map(str, range(20)):
        begun = await asyncio.gather(*(ask(connection, key=key) for connection in connections))
        assert sum(each.held for each in begun) == 1
        assert {each.record.attempt for each in begun} == {1}


async def test_done_in_the_works_own_transaction_the_others_wait_and_get_the_answer(connect: Connect) -> None:
    connections = [await connect() for _ in range(8)]
    await connections[0].execute("CREATE TABLE effects (what text)")

    async def handle(connection: Connection) -> Any:
        async with connection.transaction():
            begun = await ask(connection)
            if not begun.held:
                return begun.record.answer
            await connection.execute("INSERT INTO effects VALUES ('done')")
            await finish(connection, begun.record, {"ok": True})
            return {"ok": True}

    assert await asyncio.gather(*map(handle, connections)) == [{"ok": True}] * 8
    assert await connections[0].fetchval("SELECT count(*) FROM effects") == 1


async def test_work_that_is_rolled_back_was_never_begun(connect: Connect) -> None:
    one, two = await connect(), await connect()
    transaction = one.transaction()
    await transaction.start()
    assert (await ask(one)).held
    waiting = asyncio.create_task(ask(two))
    await transaction.rollback()
    taken = await waiting
    assert taken.held
    assert taken.record.attempt == 1


async def test_a_key_stands_for_one_request(connect: Connect) -> None:
    connection = await connect()
    first = await ask(connection)
    for state in ("in_progress", "done"):
        with pytest.raises(IdempotencyConflict, match="new key"):
            await ask(connection, what=OTHER)
        if state == "in_progress":
            await finish(connection, first.record, None)
    found = await find(connection, tenant="acme", key="k")
    assert found is not None
    assert found.fingerprint == REQUEST


async def test_tenants_do_not_meet(connect: Connect) -> None:
    connection = await connect()
    mine = await ask(connection, tenant="acme")
    theirs = await ask(connection, tenant="umbrella", what=OTHER)
    assert mine.held
    assert theirs.held
    await finish(connection, mine.record, "mine")
    assert (await ask(connection, tenant="umbrella", what=OTHER)).record.answer is None


async def test_after_a_failure_the_same_request_may_try_again(connect: Connect) -> None:
    connection = await connect()
    first = await ask(connection)
    await fail(connection, first.record)
    with pytest.raises(IdempotencyConflict):
        await ask(connection, what=OTHER)
    again = await ask(connection)
    assert again.held
    assert again.record.attempt == 2


async def test_a_holder_that_died_is_replaced_by_exactly_one(connect: Connect, clock: Clock) -> None:
    connections = [await connect() for _ in range(12)]
    dead = await ask(connections[0])
    await clock.forward(STALE - 1)
    assert not (await ask(connections[0])).held
    await clock.forward(2)
    begun = await asyncio.gather(*map(ask, connections))
    (newcomer,) = [each.record for each in begun if each.held]
    assert newcomer.attempt == dead.record.attempt + 1


async def test_a_replaced_holder_has_no_last_word(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    old = (await ask(connection)).record
    await clock.forward(STALE + 1)
    new = (await ask(connection)).record

    with pytest.raises(HolderReplaced):
        await finish(connection, old, "too late")
    await fail(connection, old)
    found = await find(connection, tenant="acme", key="k")
    assert found is not None
    assert (found.state, found.attempt) == (KeyState.IN_PROGRESS, new.attempt)

    await finish(connection, new, "in time")
    with pytest.raises(HolderReplaced):
        await finish(connection, old, "far too late")
    assert (await ask(connection)).record.answer == "in time"


async def test_a_late_holders_effects_are_rolled_back_with_its_finish(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    await connection.execute("CREATE TABLE effects (what text)")
    old = (await ask(connection)).record
    await clock.forward(STALE + 1)
    await ask(connection)

    async def late() -> None:
        async with connection.transaction():
            await connection.execute("INSERT INTO effects VALUES ('late')")
            await finish(connection, old, "late")

    with pytest.raises(HolderReplaced):
        await late()
    assert await connection.fetchval("SELECT count(*) FROM effects") == 0


async def test_a_slow_holder_that_nobody_replaced_may_finish(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    slow = await ask(connection)
    await clock.forward(STALE * 2)
    await finish(connection, slow.record, "slow but sure")
    assert (await ask(connection)).record.answer == "slow but sure"


async def test_an_answer_can_be_given_only_once(connect: Connect) -> None:
    connection = await connect()
    begun = await ask(connection)
    await finish(connection, begun.record, 1)
    with pytest.raises(HolderReplaced):
        await finish(connection, begun.record, 2)
    await fail(connection, begun.record)
    assert (await ask(connection)).record.answer == 1


async def test_after_a_day_the_key_is_free_for_anything(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    first = await ask(connection)
    await clock.forward(100)
    await finish(connection, first.record, "yesterday's")
    await clock.forward(DAY - 50)
    assert (await ask(connection)).record.answer == "yesterday's", "the day starts with the answer"
    await clock.forward(51)
    again = await ask(connection, what=OTHER)
    assert again.held
    assert (again.record.fingerprint, again.record.answer) == (OTHER, None)
    with pytest.raises(HolderReplaced):
        await finish(connection, first.record, "ghost")


async def test_expired_keys_are_purged_a_bounded_number_at_a_time(connect: Connect, clock: Clock) -> None:
    connection = await connect()
    for number in range(5):
        await ask(connection, key=f"old{number}")
    await clock.forward(DAY + 1)
    await ask(connection, key="young")
    assert [await purge(connection, limit=2) for _ in range(4)] == [2, 2, 1, 0]
    assert await find(connection, tenant="acme", key="old0") is None
    assert await find(connection, tenant="acme", key="young") is not None


async def test_the_fence_outlives_a_purge(connect: Connect, clock: Clock) -> None:
    """The count of attempts starts again with a new row; the old holder must not be taken for the new one."""
    connection = await connect()
    old = await ask(connection)
    await clock.forward(DAY + 1)
    await purge(connection)
    new = await ask(connection)
    assert new.record.attempt == old.record.attempt
    with pytest.raises(HolderReplaced):
        await finish(connection, old.record, "ghost")
    await finish(connection, new.record, "real")


async def test_purging_while_keys_are_begun_again_loses_none(connect: Connect, clock: Clock) -> None:
    askers = [await connect() for _ in range(4)]
    sweeper = await connect()
    for number in range(40):
        await ask(askers[0], key=str(number))
    await clock.forward(DAY + 1)

    async def ask_all(connection: Connection) -> list[bool]:
        return [(await ask(connection, key=str(number))).held for number in range(40)]

    async def sweep() -> None:
        while await purge(sweeper, limit=3):
            pass

    *held, _ = await asyncio.gather(*map(ask_all, askers), sweep())
    assert [sum(each) for each in zip(*held, strict=True)] == [1] * 40
    assert await sweeper.fetchval("SELECT count(*) FROM idempotency_keys") == 40


async def test_a_key_that_is_just_being_begun_again_is_not_purged(connect: Connect, clock: Clock) -> None:
    asker, sweeper = await connect(), await connect()
    for key in ("again", "over"):
        await ask(asker, key=key)
    await clock.forward(DAY + 1)
    async with asker.transaction():
        assert (await ask(asker, key="again")).held
        assert await asyncio.wait_for(purge(sweeper), 10) == 1, "it neither waits for the other nor takes its key"
    assert await find(sweeper, tenant="acme", key="again") is not None


async def test_looking_at_a_record_says_the_same_as_asking(connect: Connect, clock: Clock) -> None:
    connection = await connect()

    async def agree(key: str) -> bool:
        record = await find(connection, tenant="acme", key=key)
        assert record is not None
        expected = should_reprocess(record, await database_time(connection))
        transaction = connection.transaction()
        await transaction.start()
        assert (await ask(connection, key=key)).held is expected
        await transaction.rollback()  # leave the record as it was
        return expected

    running, done, failed = [(await ask(connection, key=key)).record for key in ("running", "done", "failed")]
    await finish(connection, done, {})
    await fail(connection, failed)
    assert running.state is KeyState.IN_PROGRESS
    assert (await agree("running"), await agree("done"), await agree("failed")) == (False, False, True)
    await clock.forward(STALE + 1)
    assert (await agree("running"), await agree("done")) == (True, False)
    await clock.forward(DAY + 1)
    assert await agree("done") is True


@pytest.mark.parametrize("key", ["", "x" * 256, "a\0b", "a\nb", "\ud800"])
async def test_a_key_that_is_no_key_is_refused(connect: Connect, key: str) -> None:
    with pytest.raises(Refused, match="Idempotency-Key"):
        await ask(await connect(), key=key)


async def test_a_key_must_outlive_its_holder(connect: Connect) -> None:
    hour = timedelta(hours=1)
    with pytest.raises(ValueError, match="outlive"):
        await begin(await connect(), tenant="t", key="k", fingerprint="f", expires_in=hour, stale_after=hour * 2)


async def test_any_json_is_an_answer_even_where_the_connection_decodes_it_by_itself(connect: Connect) -> None:
    plain, decoding = await connect(), await connect()
    await decoding.set_type_codec("jsonb", schema="pg_catalog", encoder=json.dumps, decoder=json.loads)
    for number, answer in enumerate([None, 0, "", "text", [1, {"a": None}], {"ü": 1.5}]):
        for name, connection in (("plain", plain), ("decoding", decoding)):
            begun = await ask(connection, key=f"{name}{number}")
            await finish(connection, begun.record, answer)
            assert (await ask(plain, key=f"{name}{number}")).record.answer == answer
            assert (await ask(decoding, key=f"{name}{number}")).record.answer == answer


MOMENTS = st.datetimes(datetime(2026, 1, 1), datetime(2026, 1, 3))  # noqa: DTZ001


@given(state=st.sampled_from(KeyState), stale_at=MOMENTS, expires_at=MOMENTS, now=MOMENTS)
def test_a_finished_answer_is_never_made_again_before_it_expires(
    state: KeyState, stale_at: datetime, expires_at: datetime, now: datetime
) -> None:
    record = KeyRecord("t", "k", "f", state, 1, None, now, stale_at, expires_at)
    if now >= expires_at:
        assert should_reprocess(record, now)
    elif state is KeyState.DONE:
        assert not should_reprocess(record, now)


@given(st.lists(st.text() | st.binary()), st.lists(st.text() | st.binary()))
def test_different_requests_have_different_fingerprints(one: list[Any], other: list[Any]) -> None:
    def raw(parts: list[Any]) -> list[bytes]:
        return [part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part for part in parts]

    assert (fingerprint(*raw(one)) == fingerprint(*raw(other))) is (raw(one) == raw(other))


async def test_an_answer_that_is_not_good_any_more_is_made_again_once(connect: Connect) -> None:
    connection = await connect()
    first = await begin(connection, tenant="acme", key="k", fingerprint="f")
    await finish(connection, first.record, "one")
    told = await begin(connection, tenant="acme", key="k", fingerprint="f")
    await forget(connection, told.record)
    second = await begin(connection, tenant="acme", key="k", fingerprint="f")
    assert second.held
    await finish(connection, second.record, "two")
    await forget(connection, told.record)  # whoever still believes in the first answer changes nothing
    found = await begin(connection, tenant="acme", key="k", fingerprint="f")
    assert (found.held, found.record.answer) == (False, "two")
    with pytest.raises(IdempotencyConflict):
        await begin(connection, tenant="acme", key="k", fingerprint="other")

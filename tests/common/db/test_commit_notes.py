"""Notes are acted on when a transaction has committed, and never when it is rolled back."""

from __future__ import annotations

import pytest

from support.engine import Connect
from waybill.db import Database
from waybill.db.commit_notes import after_commit
from waybill.db.database import driver


async def test_a_note_waits_for_the_commit(db: Database) -> None:
    done: list[str] = []
    async with db.hot() as connection:
        async with connection.transaction():
            after_commit(connection, lambda: done.append("first"))
            async with connection.transaction():
                after_commit(connection, lambda: done.append("inside"))
            assert done == []
        assert done == ["first", "inside"]
        after_commit(connection, lambda: done.append("without a transaction"))
    assert done[2:] == ["without a transaction"]


async def test_what_is_rolled_back_was_never_done(db: Database) -> None:
    done: list[str] = []
    async with db.hot() as connection:
        with pytest.raises(ZeroDivisionError):
            async with connection.transaction():
                after_commit(connection, lambda: done.append("lost"))
                raise ZeroDivisionError
        async with connection.transaction():
            after_commit(connection, lambda: done.append("before"))
            with pytest.raises(ZeroDivisionError):
                async with connection.transaction():
                    after_commit(connection, lambda: done.append("lost savepoint"))
                    raise ZeroDivisionError
            after_commit(connection, lambda: done.append("after"))
    assert done == ["before", "after"]


async def test_sessions_have_notes_too(db: Database) -> None:
    done: list[str] = []
    async with db.transaction() as session:
        after_commit(await driver(session), lambda: done.append("session"))
        assert done == []
    assert done == ["session"]
    with pytest.raises(ZeroDivisionError):
        async with db.transaction() as session:
            after_commit(await driver(session), lambda: done.append("lost"))
            raise ZeroDivisionError
    assert done == ["session"]


async def test_on_a_connection_of_somebody_else_a_note_is_acted_on_at_once(connect: Connect) -> None:
    connection = await connect()
    done: list[str] = []
    async with connection.transaction():
        after_commit(connection, lambda: done.append("at once"))
        assert done == ["at once"]

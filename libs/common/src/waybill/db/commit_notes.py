"""Notes of what to do once a transaction has committed, such as counting what it did. A rollback drops them.

Our own connections (`NotingConnection`) remember such notes. A savepoint that is rolled back takes its notes along. On
a connection that somebody else opened, and outside a transaction, a note is acted on at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from asyncpg.transaction import Transaction

from waybill.db.array_types import ArrayConnection

Note = Callable[[], None]


class NotingConnection(ArrayConnection):
    """A connection that remembers what to do after its transaction."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.notes: list[Note] = []

    def transaction(self, *, isolation: Any = None, readonly: bool = False, deferrable: bool = False) -> Transaction:
        return _NotingTransaction(self, isolation, readonly, deferrable)


class _NotingTransaction(Transaction):
    """A transaction or a savepoint of such a connection."""

    __slots__ = ("_mark", "_noting", "_outermost")

    def __init__(self, connection: NotingConnection, *options: Any) -> None:
        super().__init__(connection, *options)
        self._noting = connection
        self._outermost = True
        self._mark = 0

    async def start(self) -> None:
        self._outermost = not self._noting.is_in_transaction()
        await super().start()
        if self._outermost:
            self._noting.notes = []
        self._mark = len(self._noting.notes)

    async def commit(self) -> None:
        await super().commit()
        self._committed()

    async def rollback(self) -> None:
        try:
            await super().rollback()
        finally:
            self._rolled_back()

    async def __aexit__(self, kind: Any, error: Any, traceback: Any) -> None:
        try:
            await super().__aexit__(kind, error, traceback)
        except BaseException:
            self._rolled_back()
            raise
        if kind is None:
            self._committed()
        else:
            self._rolled_back()

    def _committed(self) -> None:
        if self._outermost:
            notes, self._noting.notes = self._noting.notes, []
            for note in notes:
                note()

    def _rolled_back(self) -> None:
        del self._noting.notes[self._mark :]


def after_commit(connection: Any, note: Note) -> None:
    """Do this when the connection's transaction has committed; at once if it is in none."""
    own = getattr(connection, "_con", connection)  # the pool lends proxies
    notes: list[Note] | None = getattr(own, "notes", None)  # asyncpg calls every connection an instance of ours
    if notes is not None and own.is_in_transaction():
        notes.append(note)
    else:
        note()

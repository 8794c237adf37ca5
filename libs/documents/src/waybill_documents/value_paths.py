"""The paths of values that a check looked at, such as `net` and `lines[213].amount`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, overload

from waybill_documents.values import Extracted, Row, Value

_INDEX = re.compile(r"\[[0-9]+\]")


class ValueGroup(NamedTuple):
    """A field, or a column in some rows of a table."""

    name: str
    table: str | None = None
    rows: Sequence[int] = ()

    def paths(self) -> Iterator[str]:
        """The paths, one for each row."""
        if self.table is None:
            yield self.name
        else:
            yield from (f"{self.table}[{index}].{self.name}" for index in self.rows)


class ValuePaths(Sequence[str]):
    """Paths in groups. A check of a long table looks at thousands of values, and hardly ever has to name them."""

    __slots__ = ("_groups",)

    def __init__(self, groups: Iterable[ValueGroup]) -> None:
        self._groups = tuple(groups)

    def __len__(self) -> int:
        return sum(1 if group.table is None else len(group.rows) for group in self._groups)

    def __iter__(self) -> Iterator[str]:
        for group in self._groups:
            yield from group.paths()

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return tuple(self)[index]

    def __eq__(self, other: object) -> bool:
        return tuple(self) == tuple(other) if isinstance(other, Sequence) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"ValuePaths({self._groups!r})"

    def values(self, extracted: Extracted) -> Iterator[Value | None]:
        """The values; None where there is none."""
        for name, table, indices in self._groups:
            if table is None:
                yield extracted.fields.get(name)
            else:
                rows: list[Row] = extracted.tables.get(table, [])
                yield from (rows[index].get(name) for index in indices)

    def columns(self) -> list[str]:
        """The paths with a column written once, as in `lines[*].amount`."""
        named = (group.name if group.table is None else f"{group.table}[*].{group.name}" for group in self._groups)
        return list(dict.fromkeys(named))


def column_paths(paths: Sequence[str]) -> list[str]:
    """Paths with a column written once, as in `lines[*].amount`."""
    if isinstance(paths, ValuePaths):
        return paths.columns()
    return list(dict.fromkeys(_INDEX.sub("[*]", path, count=1) for path in paths))

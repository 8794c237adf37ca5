"""Which connections make room when a server has too many."""

from __future__ import annotations

import resource
from dataclasses import dataclass

import pytest

from waybill.http.connection_room import expendable, most_connections


@dataclass
class Open:
    address: str
    waits_since: float | None


def test_nobody_goes_while_there_is_room() -> None:
    assert expendable([Open("a", 1.0)] * 100, 100) == []


def test_the_address_with_most_connections_pays_first_and_its_silent_ones_before_others() -> None:
    visitor = Open("visitor", 0.0)
    flood = [Open("flood", float(number)) for number in range(100)]
    assert expendable([visitor, *reversed(flood)], 100) == flood[: 1 + 5]


def test_whoever_waits_for_an_answer_stays() -> None:
    busy = [Open("a", None) for _ in range(100)]
    assert expendable([*busy, newest := Open("b", 9.0)], 100) == [newest]


@pytest.mark.parametrize(("descriptors", "most"), [(256, 128), (1 << 20, 4096), (resource.RLIM_INFINITY, 4096)])
def test_a_server_leaves_descriptors_for_its_files_and_its_database(
    monkeypatch: pytest.MonkeyPatch, descriptors: int, most: int
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (descriptors, descriptors))
    assert most_connections() == most

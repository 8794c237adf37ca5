"""The order of fields is topological, with ties by the alphabet; a cycle is named."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from waybill_passport.rules.dependencies import cycle, evaluation_order, needed

NAMES = [f"f{number}" for number in range(8)]
GRAPHS = st.dictionaries(st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)), min_size=1).map(
    lambda graph: {name: tuple(sorted(used & set(graph))) for name, used in graph.items()}
)


@given(GRAPHS)
def test_every_field_follows_what_it_uses(graph: dict[str, tuple[str, ...]]) -> None:
    order = evaluation_order(graph)
    assert order == evaluation_order(dict(reversed(graph.items())))
    for number, name in enumerate(order):
        assert set(graph[name]) <= set(order[:number])
        free = [each for each in graph if each not in order[:number] and set(graph[each]) <= set(order[:number])]
        assert name == min(free), "of several that could come, the first in the alphabet comes"
    if len(order) < len(graph):
        ring = cycle(graph, order)
        assert ring[0] == ring[-1] == min(ring)
        assert all(used in graph[user] for user, used in itertools.pairwise(ring))
        assert len(set(ring)) == len(ring) - 1


@given(GRAPHS)
def test_what_is_needed_is_closed(graph: dict[str, tuple[str, ...]]) -> None:
    first = min(graph)
    found = needed([first], graph)
    assert first in found
    assert all(set(graph[name]) <= found for name in found)

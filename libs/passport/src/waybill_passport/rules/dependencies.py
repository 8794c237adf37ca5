"""Which fields use which, and the order in which they are evaluated."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping

from waybill_passport.rules.syntax import Application, Argument, TextLiteral, descendants


def used_fields(term: Argument) -> tuple[str, ...]:
    """The fields that an expression uses, sorted."""
    found = set()
    for node, _ in descendants(term):
        if isinstance(node, Application) and node.function == "field" and node.arguments:
            path = node.arguments[0]
            if isinstance(path, TextLiteral):
                found.add(path.text)
    return tuple(sorted(found))


def used_facts(term: Argument) -> tuple[str, ...]:
    """The facts that an expression reads by names that stand in it, sorted. A prefix ends in a star."""
    found = set()
    for node, _ in descendants(term):
        if isinstance(node, Application) and node.function in ("getFact", "getFactsByPrefix"):
            star = "*" if node.function == "getFactsByPrefix" else ""
            parts = [each.text if isinstance(each, TextLiteral) else "…" for each in node.arguments[:2]]
            found.add(" ".join(parts) + star)
    return tuple(sorted(found))


def emits(term: Argument) -> bool:
    """Whether an expression may report on compliance."""
    return any(isinstance(node, Application) and node.function == "emitCompliance" for node, _ in descendants(term))


def evaluation_order(uses: Mapping[str, Iterable[str]]) -> list[str]:
    """Each field after those it uses; of several that could come next, the first in the alphabet.

    Fields that are in a cycle, or use one, are missing from it.
    """
    waits = {path: set(used) for path, used in uses.items()}
    users: dict[str, list[str]] = {path: [] for path in uses}
    for path, used in waits.items():
        for each in used:
            users[each].append(path)
    ready = [path for path, used in waits.items() if not used]
    heapq.heapify(ready)
    order: list[str] = []
    while ready:
        path = heapq.heappop(ready)
        order.append(path)
        for user in users[path]:
            waits[user].discard(path)
            if not waits[user]:
                heapq.heappush(ready, user)
    return order


def cycle(uses: Mapping[str, Iterable[str]], order: Iterable[str]) -> list[str]:
    """A cycle among the fields that the order lacks: `a, b, a`, beginning with the first in the alphabet."""
    missing = set(uses) - set(order)
    seen: dict[str, int] = {}
    trail: list[str] = []
    path = min(missing)
    while path not in seen:
        seen[path] = len(trail)
        trail.append(path)
        path = min(each for each in uses[path] if each in missing)
    ring = trail[seen[path] :]
    first = ring.index(min(ring))
    return [*ring[first:], *ring[:first], ring[first]]


def needed(wanted: Iterable[str], uses: Mapping[str, Iterable[str]]) -> set[str]:
    """These fields and all they use, directly or not."""
    found: set[str] = set()
    waiting = list(wanted)
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += uses[path]
    return found

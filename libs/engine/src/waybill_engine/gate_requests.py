"""What a claim asks of caps, rates and breakers, and what it learns from their answers.

The function `waybill_rooms` (in the engine's migrations) locks caps and rates, finds out how much room there is, and
shares it out to the lanes of a plan, all within the claim's own statement: a claim behind gates is one round trip, like
any other.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any

from waybill_engine.breaker import Admission
from waybill_engine.caps import NO_LIMIT
from waybill_engine.gates import Gate, Gates
from waybill_engine.rates import Opening, opening
from waybill_engine.rules import Cap, Rate
from waybill_engine.shares import GatedPlan, Portion

ROOMS = "waybill_rooms($11, $12, $13, $14, $15, $16, $17, $18, $19, $20)"
"""SQL for the rooms of the gates, and how many jobs to take from each lane. `GateRequest` has the arguments."""

_ASK_AGAIN = 60.0
"""Seconds after which to ask about a rate again that seems closed for longer."""


class GateRequest:
    def __init__(self, plan: GatedPlan, admissions: Mapping[str, Admission]) -> None:
        """`admissions` is what breakers have said already. Those that are not in it have closed meanwhile."""
        self._plan = plan
        asked = dict.fromkeys(chain.from_iterable(portion.known.gates for portion in plan.lanes))
        # In this order, so that two claims try to lock their gates in the same one.
        self._caps = sorted((gate for gate in asked if isinstance(gate, Cap)), key=lambda cap: cap.id)
        self._rates = sorted((gate for gate in asked if isinstance(gate, Rate)), key=lambda rate: rate.id)
        names = [gate for gate in asked if isinstance(gate, str)]
        self._known = [admissions[name].room if name in admissions else NO_LIMIT for name in names]
        self._gates: list[Gate] = [*self._caps, *self._rates, *names]

    @property
    def pays(self) -> bool:
        """Whether a rate counts what is claimed."""
        return bool(self._rates)

    def arguments(self) -> tuple[Any, ...]:
        """The arguments of `waybill_rooms`."""
        numbers = {gate: number for number, gate in enumerate(self._gates, 1)}
        behind = [tuple(numbers[gate] for gate in portion.known.gates) or (0,) for portion in self._plan.lanes]
        turns = [(turn, lane + 1, gate) for turn, lane in enumerate(self._plan.turns) for gate in behind[lane]]
        planned = Counter(self._plan.turns[: self._plan.limit])
        return (
            [cap.id for cap in self._caps],
            [cap.tenant for cap in self._caps],
            [cap.kind for cap in self._caps],
            [rate.id for rate in self._rates],
            self._known,
            [turn for turn, _, _ in turns],
            [lane for _, lane, _ in turns],
            [gate for _, _, gate in turns],
            [planned[lane] for lane in range(len(behind))],
            self._plan.limit,
        )

    def learn(self, answer: str, gates: Gates, now: float) -> list[Portion]:
        """Leave gates alone that let nothing through, and return how many jobs of each lane were to be taken."""
        told = json.loads(answer)
        for gate, room in zip(self._gates, told["rooms"], strict=True):
            if room is None:
                gates.back_off(gate, now)
            elif isinstance(gate, Cap) and room <= 0:
                gates.close(gate, now)
        for rate, wait in zip(self._rates, told["waits"], strict=True):
            if wait is not None:
                close_rates({rate: Opening(0, wait)}, gates, now)
        by_id = {rate.id: rate for rate in self._rates}
        close_rates({by_id[one]: opening(*numbers) for one, *numbers in told["paid"] or () if one in by_id}, gates, now)
        return self._plan.portions(told["quotas"] or ())


def close_rates(openings: Mapping[Rate, Opening], gates: Gates, now: float) -> None:
    """Leave rates that are used up alone until they open again."""
    for rate, one in openings.items():
        if one.look_in is not None:
            gates.close(rate, now, min(one.look_in, _ASK_AGAIN))


def close_caps(full: Iterable[Cap], gates: Gates, now: float) -> None:
    """Leave caps that are full alone for a moment."""
    for cap in full:
        gates.close(cap, now)

"""Facts in memory: those that a test states, and whatever a caller has in a dictionary."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from waybill_passport.rules.syntax import FactTemplate, TemplateList, TemplateValue, TemplateVariable, TestFact
from waybill_passport.rules.values import Json


class GivenFacts:
    """A source of facts: payloads by type and key."""

    def __init__(self, facts: Mapping[tuple[str, str], Json]) -> None:
        self._facts = facts
        self._keys: dict[str, list[str]] = {}
        for fact_type, key in sorted(facts):
            self._keys.setdefault(fact_type, []).append(key)

    def get(self, fact_type: str, key: str) -> Json | None:
        return self._facts.get((fact_type, key))

    def by_prefix(self, fact_type: str, prefix: str) -> list[tuple[str, Json]]:
        keys = self._keys.get(fact_type, [])
        return [(key, self._facts[fact_type, key]) for key in keys if key.startswith(prefix)]


def stated_facts(facts: Iterable[TestFact], values: Mapping[str, Json]) -> GivenFacts:
    """The facts of a test, with generated values where they name some."""
    return GivenFacts({(fact.type, fact.key): _filled(fact.payload, values) for fact in facts})


def _filled(template: FactTemplate, values: Mapping[str, Json]) -> Json:
    match template:
        case TemplateValue(value):
            return value
        case TemplateVariable(name):
            return values[name]
        case TemplateList(items):
            return [_filled(each, values) for each in items]
        case _:
            return {key: _filled(each, values) for key, each in template.entries}

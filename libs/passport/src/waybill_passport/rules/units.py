"""The units of quantities, which of them convert into each other, and what their products and quotients are."""

from __future__ import annotations

UNITS = ("kg", "g", "kWh", "Wh", "gCO2e", "kgCO2e", "gCO2e_per_kWh", "pct", "each")

_IN_SMALLER = {("kg", "g"): 1000, ("kWh", "Wh"): 1000, ("kgCO2e", "gCO2e"): 1000}

_IN_DOCUMENTS = {
    "unit:gram": "g",
    "unit:kilogram": "kg",
    "unit:kilowattHour": "kWh",
    "unit:wattHour": "Wh",
    "unit:percent": "pct",
    "unit:piece": "each",
}
"""How documents of Catena-X write the units that we know."""


def unit_in_document(text: str) -> str | None:
    """The unit that a document means."""
    return text if text in UNITS else _IN_DOCUMENTS.get(text)


def conversion(source: str, target: str) -> tuple[int, int] | None:
    """Numerator and denominator that turn an amount in one unit into an amount in another."""
    if source == target:
        return 1, 1
    if (source, target) in _IN_SMALLER:
        return _IN_SMALLER[source, target], 1
    if (target, source) in _IN_SMALLER:
        return 1, _IN_SMALLER[target, source]
    return None


def convertible(source: str) -> list[str]:
    """The other units into which amounts in this one can be converted."""
    return [target for target in UNITS if target != source and conversion(source, target)]


def product(left: str, right: str) -> tuple[str, int] | None:
    """The unit of a product, and by what it has to be divided."""
    if {left, right} == {"pct", "each"}:
        return None  # 10 pct of 3 pieces could be 0.3 pieces or 30 pct
    if "pct" in (left, right):
        return (right if left == "pct" else left), 100
    if "each" in (left, right):
        return (right if left == "each" else left), 1
    if {left, right} == {"gCO2e_per_kWh", "kWh"}:
        return "gCO2e", 1
    return None


def quotient(left: str, right: str) -> str | None:
    """The unit of a quotient of different units. Equal units have a plain number as quotient."""
    if right == "each":
        return left
    return {("gCO2e", "kWh"): "gCO2e_per_kWh", ("gCO2e", "gCO2e_per_kWh"): "kWh"}.get((left, right))

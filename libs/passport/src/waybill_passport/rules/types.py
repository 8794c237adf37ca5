"""The types of the rule language. `str()` writes a type as rules do."""

from __future__ import annotations

from dataclasses import dataclass

from waybill_passport.rules import limits


@dataclass(frozen=True, slots=True)
class Primitive:
    """Bool, Int, Text or Date."""

    name: str

    def __str__(self) -> str:
        return self.name


BOOL = Primitive("Bool")
INT = Primitive("Int")
TEXT = Primitive("Text")
DATE = Primitive("Date")
PRIMITIVES = {each.name: each for each in (BOOL, INT, TEXT, DATE)}


@dataclass(frozen=True, slots=True)
class DecimalType:
    """A number with a fixed number of decimal places."""

    scale: int

    def __str__(self) -> str:
        return f"Dec({self.scale})"


@dataclass(frozen=True, slots=True)
class QuantityType:
    """A number with a unit and six decimal places."""

    unit: str

    def __str__(self) -> str:
        return f"Qty({self.unit})"


@dataclass(frozen=True, slots=True)
class OptionType:
    """A value that may be missing. It never holds another Opt, so that null in JSON means one thing."""

    of: RuleType

    def __str__(self) -> str:
        return f"Opt({self.of})"


@dataclass(frozen=True, slots=True)
class ListType:
    """Values of one type, in order."""

    of: RuleType

    def __str__(self) -> str:
        return f"List({self.of})"


@dataclass(frozen=True, slots=True)
class MapType:
    """Values of one type by texts, in the order of the texts."""

    of: RuleType

    def __str__(self) -> str:
        return f"Map(Text, {self.of})"


@dataclass(frozen=True, slots=True)
class RecordType:
    """Named values, each of its own type. Without fields it is the type of a fact: any JSON object."""

    fields: tuple[tuple[str, RuleType], ...] | None = None

    def __str__(self) -> str:
        if self.fields is None:
            return "Record"
        return f"Record({', '.join(f'{name}: {each}' for name, each in self.fields)})"

    def field(self, name: str) -> RuleType | None:
        return dict(self.fields or ()).get(name)


RuleType = Primitive | DecimalType | QuantityType | OptionType | ListType | MapType | RecordType

OPEN_RECORD = RecordType()

TYPE_NAMES = (*PRIMITIVES, "Dec", "Qty", "Opt", "List", "Map", "Record")


def optional(of: RuleType) -> OptionType:
    """An Opt of this type, or the type itself if it is an Opt."""
    return of if isinstance(of, OptionType) else OptionType(of)


def closed(of: RuleType) -> bool:
    """Whether the type says everything about its values: no `Record` without fields is in it."""
    match of:
        case OptionType() | ListType() | MapType():
            return closed(of.of)
        case RecordType():
            return of.fields is not None and all(closed(each) for _, each in of.fields)
        case _:
            return True


def too_complex(of: RuleType) -> bool:
    """Whether the type has more parts or levels than a type may have."""
    parts = 0
    waiting: list[tuple[RuleType, int]] = [(of, 1)]
    while waiting:
        each, depth = waiting.pop()
        parts += 1
        if parts > limits.TYPE_PARTS or depth > limits.TYPE_NESTING:
            return True
        if isinstance(each, OptionType | ListType | MapType):
            waiting.append((each.of, depth + 1))
        elif isinstance(each, RecordType):
            waiting += [(part, depth + 1) for _, part in each.fields or ()]
    return False


def ordered(of: RuleType) -> bool:
    """Whether values of this type are smaller or larger than each other."""
    return of in (INT, TEXT, DATE) or isinstance(of, DecimalType | QuantityType)

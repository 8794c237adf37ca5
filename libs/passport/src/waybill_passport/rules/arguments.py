"""The arguments of a call, as the built-in functions ask for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from waybill_passport.rules.checked_term import CheckedTerm, Run
from waybill_passport.rules.limits import SCALE
from waybill_passport.rules.mistakes import RuleMistake, did_you_mean
from waybill_passport.rules.syntax import Application, IntLiteral, Lambda, TextLiteral, TypeArgument
from waybill_passport.rules.types import ListType, OptionType, RuleType
from waybill_passport.rules.units import UNITS

if TYPE_CHECKING:
    from waybill_passport.rules.checker import Checker


class ItemFunction(NamedTuple):
    """The code of `x -> …`, and where in the frame its parameters are."""

    slots: tuple[int, ...]
    code: CheckedTerm

    @property
    def run(self) -> Run:
        return self.code.run


class Arguments:
    """Reads the arguments of one call; the places of mistakes are theirs."""

    def __init__(self, checker: Checker, call: Application, signature: str, least: int, most: int) -> None:
        self.checker = checker
        self.call = call
        self.count = len(call.arguments)
        self.at = call.at
        self._signature = signature
        if not least <= self.count <= most:
            raise self.mistake(f"This has {self.count} {'argument' if self.count == 1 else 'arguments'}.", call.at)

    def mistake(self, message: str, at: int) -> RuleMistake:
        return self.checker.mistake(f"{message} It is {self._signature}.", at)

    def place(self, index: int) -> int:
        return self.call.arguments[index].at

    def any(self, index: int) -> CheckedTerm:
        return self.checker.check(self.call.arguments[index])

    def of(self, index: int, wanted: RuleType) -> CheckedTerm:
        return self.checker.expect(self.call.arguments[index], wanted, f"Argument {index + 1} of {self.call.function}")

    def list_of_any(self, index: int) -> tuple[CheckedTerm, RuleType]:
        """A list, and the type of its items."""
        code = self.any(index)
        if not isinstance(code.type, ListType):
            raise self.mistake(f"Argument {index + 1} must be a List, but this is {code.type}.", self.place(index))
        return code, code.type.of

    def option_of_any(self, index: int) -> tuple[CheckedTerm, RuleType]:
        """An Opt, and the type in it."""
        code = self.any(index)
        if not isinstance(code.type, OptionType):
            raise self.mistake(f"Argument {index + 1} must be an Opt, but this is {code.type}.", self.place(index))
        return code, code.type.of

    def text(self, index: int, what: str) -> str:
        """A text that stands in the rules themselves."""
        term = self.call.arguments[index]
        if not isinstance(term, TextLiteral):
            raise self.mistake(f"Here must be {what} in quotation marks.", term.at)
        return term.text

    def unit(self, index: int) -> str:
        unit = self.text(index, "a unit")
        if unit not in UNITS:
            message = f"There is no unit '{unit}'.{did_you_mean(unit, UNITS)} There are {', '.join(UNITS)}."
            raise self.checker.mistake(message, self.place(index))
        return unit

    def scale(self, index: int) -> int:
        term = self.call.arguments[index]
        if not isinstance(term, IntLiteral) or term.value > SCALE:
            raise self.mistake(f"Here must be the number of decimal places, 0 to {SCALE}.", term.at)
        return term.value

    def type(self, index: int) -> RuleType:
        term = self.call.arguments[index]
        if not isinstance(term, TypeArgument):
            raise self.mistake("Here must be a type, such as Text or Dec(2).", term.at)
        return term.type

    def function(self, index: int, *parameters: RuleType) -> ItemFunction:
        """`x -> …` with parameters of these types."""
        term = self.call.arguments[index]
        if not isinstance(term, Lambda) or len(term.parameters) != len(parameters):
            example = "x -> …" if len(parameters) == 1 else "(a, x) -> …"
            raise self.mistake(f"Argument {index + 1} must be '{example}'.", term.at)
        slots = tuple(
            self.checker.bind(name, of, term.at) for name, of in zip(term.parameters, parameters, strict=True)
        )
        code = self.checker.check(term.body)
        for name in term.parameters:
            self.checker.unbind(name)
        return ItemFunction(slots, code)

    def body_place(self, index: int) -> int:
        """Where the body of `x -> …` begins."""
        term = self.call.arguments[index]
        return term.body.at if isinstance(term, Lambda) else term.at

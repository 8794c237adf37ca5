"""Reads a rule package: fields, examples and properties."""

from __future__ import annotations

from decimal import Decimal

from waybill_passport.rules import limits
from waybill_passport.rules.expression_parser import read_expression
from waybill_passport.rules.lexeme_stream import LexemeStream
from waybill_passport.rules.mistakes import did_you_mean
from waybill_passport.rules.syntax import (
    AnyExpectation,
    EmissionExpectation,
    ExampleTest,
    Expectation,
    FactTemplate,
    FailureExpectation,
    FieldDeclaration,
    Forall,
    PackageTest,
    PropertyTest,
    RuleSource,
    TemplateList,
    TemplateObject,
    TemplateValue,
    TemplateVariable,
    Term,
    TestFact,
)
from waybill_passport.rules.type_parser import read_type

_DECLARATIONS = ("field", "example", "property")


def parse(source: str) -> RuleSource:
    """The tree of a package, or a mistake."""
    stream = LexemeStream(source)
    fields: list[FieldDeclaration] = []
    tests: list[PackageTest] = []
    while stream.peek().kind != "end":
        start = stream.peek()
        if stream.at_word("field"):
            fields.append(_field(stream))
        elif stream.at_word("example"):
            tests.append(_example(stream))
        elif stream.at_word("property"):
            tests.append(_property(stream))
        else:
            hint = did_you_mean(start.text, _DECLARATIONS) if start.kind == "name" else ""
            raise stream.mistake(f"Here should be field, example or property, not {start}.{hint}")
        if len(fields) > limits.FIELDS:
            raise stream.mistake(f"A package has at most {limits.FIELDS} fields.", start)
        if len(tests) > limits.TESTS:
            raise stream.mistake(f"A package has at most {limits.TESTS} examples and properties.", start)
    return RuleSource(tuple(fields), tuple(tests))


def _field(stream: LexemeStream) -> FieldDeclaration:
    stream.next()
    start = stream.peek()
    path = stream.path()
    stream.expect(":", "between path and type")
    declared = read_type(stream)
    stream.expect("=", "after the type")
    body = read_expression(stream)
    stream.expect(";", f"at the end of the field {path}")
    return FieldDeclaration(path, declared, body, at=start.at)


def _example(stream: LexemeStream) -> ExampleTest:
    start = stream.next()
    name = stream.text("what the example shows")
    stream.expect("{", "after the name")
    facts = _facts(stream, generated=False)
    return ExampleTest(name, facts, _expectations(stream), at=start.at)


def _property(stream: LexemeStream) -> PropertyTest:
    start = stream.next()
    name = stream.text("what always holds")
    cases = _numbered(stream, "cases", limits.CASES)
    seed = _numbered(stream, "seed", limits.INTEGER)
    stream.expect("{", "after the seed")
    variables: list[Forall] = []
    while stream.at_word("forall"):
        lexeme = stream.peek(1)
        variables.append(_forall(stream))
        if variables[-1].name in (each.name for each in variables[:-1]):
            raise stream.mistake(f"There is already a generated value '{lexeme.text}'.", lexeme)
        if len(variables) > limits.PARAMETERS:
            raise stream.mistake(f"A property has at most {limits.PARAMETERS} generated values.", lexeme)
    assumptions: list[Term] = []
    while stream.at_word("assume"):
        stream.next()
        assumptions.append(read_expression(stream))
        stream.expect(";", "after the assumption")
    facts = _facts(stream, generated=True)
    expectations = _expectations(stream)
    return PropertyTest(name, cases, seed, tuple(variables), tuple(assumptions), facts, expectations, at=start.at)


def _numbered(stream: LexemeStream, word: str, most: int) -> int:
    stream.expect_word(word, "before the braces: cases(n) seed(s)")
    stream.expect("(", f"after {word}")
    lexeme = stream.peek()
    number = stream.number(f"the number in {word}(…)", most)
    if word == "cases" and number == 0:
        raise stream.mistake("A property has at least one case.", lexeme)
    stream.expect(")", f"after the number in {word}(…)")
    return number


def _forall(stream: LexemeStream) -> Forall:
    stream.next()
    start = stream.peek()
    name = stream.name("the name of a generated value")
    stream.expect(":", "between name and type")
    of = read_type(stream)
    low = high = None
    if stream.at_word("from"):
        stream.next()
        low = read_expression(stream)
        stream.expect_word("to", "after the smallest value")
        high = read_expression(stream)
    stream.expect(";", f"after the generated value '{name}'")
    return Forall(name, of, low, high, at=start.at)


def _facts(stream: LexemeStream, *, generated: bool) -> tuple[TestFact, ...]:
    facts: dict[tuple[str, str], TestFact] = {}
    while stream.at_word("fact"):
        start = stream.next()
        fact_type, key = stream.text("the type of a fact"), stream.text("the key of a fact")
        if (fact_type, key) in facts:
            raise stream.mistake(f'There is already a fact "{fact_type}" "{key}".', start)
        stream.expect("=", "after the key")
        at = stream.peek().at
        if not stream.at_sign("{"):
            raise stream.mistake(f"Here should be a JSON object, not {stream.peek()}.")
        payload = _template(stream, generated=generated)
        stream.expect(";", "after the fact")
        if isinstance(payload, TemplateObject):
            facts[fact_type, key] = TestFact(fact_type, key, payload, at=at)
    return tuple(facts.values())


def _template(stream: LexemeStream, *, generated: bool) -> FactTemplate:
    lexeme = stream.peek()
    with stream.deeper():
        if stream.accept("["):
            items = stream.several(lambda: _template(stream, generated=generated), "]", "the items of a list")
            return TemplateList(items, at=lexeme.at)
        if stream.accept("{"):
            entries: dict[str, FactTemplate] = {}

            def entry() -> None:
                key_lexeme = stream.peek()
                key = stream.text("a key")
                if key in entries:
                    raise stream.mistake(f"{key_lexeme} is already there.", key_lexeme)
                stream.expect(":", "between key and value")
                entries[key] = _template(stream, generated=generated)

            stream.several(entry, "}", "the values of an object")
            return TemplateObject(tuple(entries.items()), at=lexeme.at)
    return _plain_template(stream, generated=generated)


def _plain_template(stream: LexemeStream, *, generated: bool) -> FactTemplate:
    start = stream.peek()
    negative = stream.accept("-")
    lexeme = stream.next()
    sign = "-" if negative else ""
    if lexeme.kind == "int":
        return TemplateValue(int(sign + lexeme.text), at=start.at)
    if lexeme.kind == "dec":
        return TemplateValue(Decimal(sign + lexeme.text), at=start.at)
    if not negative:
        if lexeme.kind == "text":
            return TemplateValue(lexeme.text, at=start.at)
        if lexeme.kind == "name" and lexeme.text in ("true", "false", "null"):
            return TemplateValue({"true": True, "false": False, "null": None}[lexeme.text], at=start.at)
        if lexeme.kind == "name" and generated:
            return TemplateVariable(lexeme.text, at=start.at)
    also = ", or the name of a generated value" if generated else ""
    raise stream.mistake(f"Here should be a JSON value{also}, not {lexeme}.", lexeme)


def _expectations(stream: LexemeStream) -> tuple[AnyExpectation, ...]:
    expectations: list[AnyExpectation] = []
    while stream.at_word("expect"):
        expectations.append(_expectation(stream))
        stream.expect(";", "after the expectation")
    if not expectations:
        words = ("forall", "assume", "fact", "expect")
        hint = did_you_mean(stream.peek().text, words) if stream.peek().kind == "name" else ""
        raise stream.mistake(f"Here should be 'expect', not {stream.peek()}: a test expects something.{hint}")
    stream.expect("}", "after the last expectation")
    return tuple(expectations)


def _expectation(stream: LexemeStream) -> AnyExpectation:
    start = stream.next()
    follows = stream.peek(1).kind
    if stream.at_word("fails") and follows == "name":
        stream.next()
        at = stream.peek().at
        return FailureExpectation(stream.path(), stream.text("the code of the failure"), at=at)
    if stream.at_word("emits") and follows == "text":
        stream.next()
        return EmissionExpectation(stream.text("a rule"), stream.text("a status"), at=start.at)
    return Expectation(read_expression(stream), at=start.at)

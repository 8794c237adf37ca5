"""Writes trees as source, always in the same way. Reading that gives the tree again.

Hashes of packages are hashes of this text, so that neither comments nor spaces nor the order of fields change them.
"""

from __future__ import annotations

from decimal import Decimal

from waybill_passport.rules.syntax import (
    AnyExpectation,
    Application,
    Argument,
    Assertion,
    Block,
    BoolLiteral,
    Conditional,
    DecimalLiteral,
    EmissionExpectation,
    ExampleTest,
    Expectation,
    FactTemplate,
    FieldDeclaration,
    Forall,
    IntLiteral,
    Lambda,
    Let,
    ListLiteral,
    MapLiteral,
    Operations,
    PackageTest,
    Prefixed,
    RecordAccess,
    RecordLiteral,
    RuleSource,
    TemplateList,
    TemplateValue,
    TemplateVariable,
    TestFact,
    TextLiteral,
    TypeArgument,
    Variable,
)

_TIGHTNESS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4, "*": 5, "/": 5}
_PREFIX, _PRIMARY = 6, 7
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


def print_source(source: RuleSource) -> str:
    """A package: its fields, then its tests."""
    return print_fields(source.fields) + print_tests(source.tests)


def print_fields(fields: tuple[FieldDeclaration, ...]) -> str:
    return "".join(print_field(each) + "\n" for each in fields)


def print_tests(tests: tuple[PackageTest, ...]) -> str:
    return "".join(print_test(each) + "\n" for each in tests)


def print_field(field: FieldDeclaration) -> str:
    if isinstance(field.body, Block):
        lines = [_step(step) for step in field.body.steps] + [print_term(field.body.result)]
        return f"field {field.path}: {field.type} =\n" + "\n".join(f"  {line}" for line in lines) + ";"
    return f"field {field.path}: {field.type} = {print_term(field.body)};"


def print_text(text: str) -> str:
    """A text literal."""
    return '"' + "".join(_ESCAPES.get(each) or _letter(each) for each in text) + '"'


def _letter(letter: str) -> str:
    return f"\\u{ord(letter):04x}" if letter < " " or letter in "\x7f\u2028\u2029" else letter


def print_term(term: Argument, around: int = 0) -> str:
    """An expression, in parentheses if what is around it binds more tightly."""
    match term:
        case TextLiteral():
            return print_text(term.text)
        case BoolLiteral():
            return "true" if term.value else "false"
        case IntLiteral():
            return str(term.value)
        case DecimalLiteral():
            digits = str(term.digits).rjust(term.scale + 1, "0")
            return f"{digits[: -term.scale]}.{digits[-term.scale :]}"
        case Variable():
            return term.name
        case TypeArgument():
            return str(term.type)
        case Prefixed():
            return _in_parentheses(_prefixed(term), _PREFIX, around)
        case Operations():
            return _operations(term, around)
        case Application():
            return f"{term.function}({', '.join(print_term(each) for each in term.arguments)})"
        case RecordAccess():
            return f"{print_term(term.record, _PRIMARY)}.{term.name}"
        case ListLiteral():
            return f"[{', '.join(print_term(each) for each in term.items)}]"
        case MapLiteral():
            return "{" + ", ".join(f"{print_text(key)}: {print_term(each)}" for key, each in term.entries) + "}"
        case RecordLiteral():
            return "{" + ", ".join(f"{name}: {print_term(each)}" for name, each in term.entries) + "}"
        case _:
            return _in_parentheses(_open_ended(term), 0, around)


def _prefixed(term: Prefixed) -> str:
    operand = print_term(term.operand, _PREFIX)
    return f"{term.operator}{' ' if operand.startswith('-') else ''}{operand}"  # two signs would begin a comment


def _open_ended(term: Conditional | Block | Lambda) -> str:
    """What reaches as far to the right as it can."""
    if isinstance(term, Lambda):
        names = term.parameters[0] if len(term.parameters) == 1 else f"({', '.join(term.parameters)})"
        return f"{names} -> {print_term(term.body)}"
    if isinstance(term, Block):
        return " ".join([*map(_step, term.steps), print_term(term.result)])
    return f"if {print_term(term.condition)} then {print_term(term.then)} else {print_term(term.otherwise)}"


def _step(step: Let | Assertion) -> str:
    if isinstance(step, Let):
        return f"let {step.name} = {print_term(step.value)};"
    return f"assert({print_term(step.condition)}, {print_text(step.reason)}, {print_text(step.message)});"


def _operations(term: Operations, around: int) -> str:
    own = _TIGHTNESS[term.others[0][0]]
    parts = [print_term(term.first, own + 1)]
    for operator, operand in term.others:
        parts += [operator, print_term(operand, own + 1)]
    return _in_parentheses(" ".join(parts), own, around)


def _in_parentheses(text: str, own: int, around: int) -> str:
    return f"({text})" if own < around else text


def print_test(test: PackageTest) -> str:
    lines: list[str] = []
    if isinstance(test, ExampleTest):
        head = f"example {print_text(test.name)}"
    else:
        head = f"property {print_text(test.name)} cases({test.cases}) seed({test.seed})"
        lines += [_forall(each) for each in test.variables]
        lines += [f"assume {print_term(each)};" for each in test.assumptions]
    lines += [_fact(each) for each in test.facts]
    lines += [f"expect {_expectation(each)};" for each in test.expectations]
    return f"{head} {{\n" + "".join(f"  {line}\n" for line in lines) + "}"


def _forall(variable: Forall) -> str:
    text = f"forall {variable.name}: {variable.type}"
    if variable.low is not None and variable.high is not None:
        text += f" from {print_term(variable.low)} to {print_term(variable.high)}"
    return text + ";"


def _fact(fact: TestFact) -> str:
    return f"fact {print_text(fact.type)} {print_text(fact.key)} = {_template(fact.payload)};"


def _template(template: FactTemplate) -> str:
    match template:
        case TemplateVariable():
            return template.name
        case TemplateList():
            return f"[{', '.join(_template(each) for each in template.items)}]"
        case TemplateValue(value):
            if value is None:
                return "null"
            if isinstance(value, bool):
                return "true" if value else "false"
            if isinstance(value, str):
                return print_text(value)
            return format(value, "f") if isinstance(value, Decimal) else str(value)
        case _:
            return "{" + ", ".join(f"{print_text(key)}: {_template(each)}" for key, each in template.entries) + "}"


def _expectation(expectation: AnyExpectation) -> str:
    if isinstance(expectation, Expectation):
        return print_term(expectation.condition)
    if isinstance(expectation, EmissionExpectation):
        return f"emits {print_text(expectation.rule)} {print_text(expectation.status)}"
    return f"fails {expectation.path} {print_text(expectation.reason)}"

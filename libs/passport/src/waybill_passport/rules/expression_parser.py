"""Reads expressions. It recurses once per level of nesting, which is bounded; operators in a row cost no depth."""

from __future__ import annotations

from waybill_passport.rules import limits
from waybill_passport.rules.lexeme_stream import KEYWORDS, LexemeStream
from waybill_passport.rules.lexer import Lexeme
from waybill_passport.rules.syntax import (
    Application,
    Argument,
    Assertion,
    Block,
    BoolLiteral,
    Conditional,
    DecimalLiteral,
    IntLiteral,
    Lambda,
    Let,
    ListLiteral,
    MapLiteral,
    Operations,
    Prefixed,
    RecordAccess,
    RecordLiteral,
    Term,
    TextLiteral,
    TypeArgument,
    Variable,
    descendants,
)
from waybill_passport.rules.type_parser import read_type
from waybill_passport.rules.types import TYPE_NAMES

COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
PRECEDENCE = (("*", "/"), ("+", "-"), COMPARISONS, ("&&",), ("||",))
"""The operators, from those that bind most tightly."""
_OPERATORS = tuple(sign for level in PRECEDENCE for sign in level)


def read_expression(stream: LexemeStream) -> Term:
    """A whole expression, whose tree is not too deep."""
    start = stream.peek()
    term = _expression(stream)
    if any(depth > limits.TREE for _, depth in descendants(term)):
        message = f"This expression is more than {limits.TREE} levels deep. Give parts of it names with let."
        raise stream.mistake(message, start)
    return term


def _expression(stream: LexemeStream) -> Term:
    with stream.deeper():
        if stream.at_word("let", "assert"):
            return _block(stream)
        if stream.at_word("if"):
            return _conditional(stream)
        return _operators(stream)


def _block(stream: LexemeStream) -> Term:
    start = stream.peek()
    steps: list[Let | Assertion] = []
    while stream.at_word("let", "assert"):
        steps.append(_let(stream) if stream.at_word("let") else _assertion(stream))
    result = _expression(stream)
    if isinstance(result, Block):  # one in parentheses, which says the same without them
        return Block((*steps, *result.steps), result.result, at=start.at)
    return Block(tuple(steps), result, at=start.at)


def _let(stream: LexemeStream) -> Let:
    stream.next()
    start = stream.peek()
    name = stream.name("the name of a value")
    stream.expect("=", "after the name")
    value = _expression(stream)
    stream.expect(";", f"after the value of '{name}'")
    return Let(name, value, at=start.at)


def _assertion(stream: LexemeStream) -> Assertion:
    start = stream.next()
    stream.expect("(", "after assert")
    condition = _expression(stream)
    stream.expect(",", "after the condition")
    reason = stream.text("a code")
    stream.expect(",", "after the code")
    message = stream.text("a sentence that says what is wrong")
    stream.accept(",")
    stream.expect(")", "after the sentence")
    stream.expect(";", "after assert(…)")
    return Assertion(condition, reason, message, at=start.at)


def _conditional(stream: LexemeStream) -> Term:
    start = stream.next()
    condition = _expression(stream)
    stream.expect_word("then", "after the condition")
    then = _expression(stream)
    stream.expect_word("else", "after the value that holds if the condition does")
    return Conditional(condition, then, _expression(stream), at=start.at)


def _operators(stream: LexemeStream) -> Term:
    first = _operand(stream)
    others: list[tuple[Lexeme, Term]] = []
    while stream.at_sign(*_OPERATORS):
        operator = stream.next()
        others.append((operator, _operand(stream)))
    for level in PRECEDENCE:
        if others:
            first, others = _grouped(stream, first, others, level)
    return first


def _grouped(
    stream: LexemeStream, first: Term, others: list[tuple[Lexeme, Term]], level: tuple[str, ...]
) -> tuple[Term, list[tuple[Lexeme, Term]]]:
    """Join what the operators of one precedence join; the others stay."""
    left: list[Term] = []
    between: list[Lexeme] = []
    term, group = first, list[tuple[str, Term]]()
    for operator, operand in others:
        if operator.text in level:
            if group and level is COMPARISONS:
                raise stream.mistake("Comparisons cannot follow one another. Join them with &&.", operator)
            group.append((operator.text, operand))
            continue
        left.append(_joined(term, group))
        between.append(operator)
        term, group = operand, []
    left.append(_joined(term, group))
    return left[0], list(zip(between, left[1:], strict=True))


def _joined(first: Term, group: list[tuple[str, Term]]) -> Term:
    return Operations(first, tuple(group), at=first.at) if group else first


def _operand(stream: LexemeStream) -> Term:
    signs: list[Lexeme] = []
    while stream.at_sign("-", "!"):
        signs.append(stream.next())
    term = _primary(stream)
    while stream.accept("."):
        at = stream.peek().at
        term = RecordAccess(term, stream.name("the name of a record's field"), at=at)
    for sign in reversed(signs):
        term = Prefixed(sign.text, term, at=sign.at)
    return term


def _primary(stream: LexemeStream) -> Term:
    lexeme = stream.peek()
    match lexeme.kind:
        case "int":
            return IntLiteral(int(stream.next().text), at=lexeme.at)
        case "dec":
            return _decimal(stream)
        case "text":
            return TextLiteral(stream.next().text, at=lexeme.at)
        case "name":
            return _word(stream)
    if stream.accept("("):
        term = _expression(stream)
        stream.expect(")", "to close the parenthesis")
        return term
    if stream.accept("["):
        items = stream.several(lambda: _expression(stream), "]", "the items of a list")
        return ListLiteral(items, at=lexeme.at)
    if stream.accept("{"):
        return _braces(stream, lexeme)
    raise stream.mistake(f"Here should be a value, not {lexeme}.")


def _decimal(stream: LexemeStream) -> Term:
    lexeme = stream.next()
    whole, _, places = lexeme.text.partition(".")
    if len(places) > limits.SCALE:
        raise stream.mistake(f"A number has at most {limits.SCALE} decimal places.", lexeme)
    return DecimalLiteral(int(whole + places), len(places), at=lexeme.at)


def _word(stream: LexemeStream) -> Term:
    lexeme = stream.next()
    if lexeme.text in ("true", "false"):
        return BoolLiteral(lexeme.text == "true", at=lexeme.at)
    if stream.at_sign("(") and (lexeme.text not in KEYWORDS or lexeme.text == "field"):
        stream.next()
        arguments = stream.several(lambda: _argument(stream), ")", f"the arguments of {lexeme.text}")
        return Application(lexeme.text, arguments, at=lexeme.at)
    if lexeme.text in KEYWORDS:
        if lexeme.text in ("if", "let", "assert"):
            raise stream.mistake(f"Put parentheses around '{lexeme.text} …' to use it inside of an expression.", lexeme)
        raise stream.mistake(f"Here should be a value, not {lexeme}, which is a word of the language.", lexeme)
    return Variable(lexeme.text, at=lexeme.at)


def _argument(stream: LexemeStream) -> Argument:
    start = stream.peek()
    if stream.at_word(*TYPE_NAMES):
        return TypeArgument(read_type(stream), at=start.at)
    if start.kind == "name" and stream.at_sign("->", ahead=1):
        parameters: tuple[str, ...] = (stream.name("the name of an item"),)
    elif _at_parameters(stream):
        stream.next()
        parameters = stream.several(lambda: stream.name("the name of a parameter"), ")", "the parameters")
    else:
        return _expression(stream)
    stream.expect("->", "after the parameters")
    return Lambda(parameters, _expression(stream), at=start.at)


def _at_parameters(stream: LexemeStream) -> bool:
    """Whether `(a, b) ->` comes next."""
    if not stream.at_sign("("):
        return False
    ahead = 1
    while stream.peek(ahead).kind == "name" and stream.at_sign(",", ahead=ahead + 1) and ahead < 2 * limits.PARAMETERS:
        ahead += 2
    ahead += stream.peek(ahead).kind == "name"
    return stream.at_sign(")", ahead=ahead) and stream.at_sign("->", ahead=ahead + 1)


def _braces(stream: LexemeStream, start: Lexeme) -> Term:
    """`{"key": value}` is a map and `{name: value}` a record."""
    entries: dict[str, Term] = {}
    kind = stream.peek().kind
    if kind not in ("text", "name"):
        raise stream.mistake(f'Here should be {{name: value}} or {{"key": value}}, not {stream.peek()}.')

    def entry() -> None:
        lexeme = stream.peek()
        key = stream.text("a key of the map") if kind == "text" else stream.name("the name of a record's field")
        if key in entries:
            raise stream.mistake(f"{lexeme} is already there.", lexeme)
        stream.expect(":", "before the value")
        entries[key] = _expression(stream)

    stream.several(entry, "}", "the values in braces")
    if kind == "text":
        return MapLiteral(tuple(entries.items()), at=start.at)
    return RecordLiteral(tuple(entries.items()), at=start.at)

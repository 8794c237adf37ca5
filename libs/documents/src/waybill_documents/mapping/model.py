"""The mapping language: what a mapping may say, with its defaults and why.

These classes are the schema. `schema.py` writes them as JSON Schema, `docs/mappings.md` teaches them, and loading a
mapping checks it against them. Nothing here looks at a document.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from waybill_documents.expressions import Expression

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""The name of a mapping, field, table, column, lookup or computed value."""

Phrase = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""Words as they are printed. Case, spacing and a closing colon do not matter; the order of the words does."""


def _several(given: object) -> object:
    return (given,) if isinstance(given, str) else given


Phrases = Annotated[
    tuple[Phrase, ...],
    Field(min_length=1, max_length=50),
    BeforeValidator(_several, json_schema_input_type=Phrase | tuple[Phrase, ...]),
]
"""One phrase or several alternatives."""

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
"""A regular expression for RE2, which takes linear time whatever the text; its first group, if any, is the value."""

ValueType = Literal["text", "digits", "integer", "decimal", "date"]

Decimals = Annotated[
    int | None,
    Field(
        ge=0,
        le=30,
        description="The most digits that may stand after the decimal sign of a `decimal`; with more it is unreadable."
        " Tells `12,500` from twelve and a half thousand.",
    ),
]


def _decimals_are_of_decimals(rule: FieldRule | ColumnRule) -> None:
    if rule.decimals is not None and rule.type != "decimal":
        raise ValueError(f"only a decimal has decimals, and this is of the type {rule.type}")


class Strict(BaseModel):
    """Unknown keys are mistakes, and a mapping never changes once it is loaded."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Locale(Strict):
    """How numbers and dates are printed: a known language, and what differs from it."""

    base: Literal["de", "en", "fr", "id", "nl"]
    decimal: Literal[",", "."] | None = None
    group: tuple[Literal[".", ",", " ", "'"], ...] | None = None
    dates: tuple[str, ...] | None = Field(None, description="Formats like `d MMMM yyyy`, tried in order.")
    months: dict[str, Annotated[int, Field(ge=1, le=12)]] | None = Field(
        None, description="Further month names and what month they mean."
    )
    currencies: tuple[str, ...] | None = Field(
        None, description="Signs that may stand before or after an amount, joined or apart."
    )


class Area(Strict):
    """A part of the page in per cent of its width and height."""

    left: Annotated[int, Field(ge=0, le=100)] = 0
    top: Annotated[int, Field(ge=0, le=100)] = 0
    right: Annotated[int, Field(ge=0, le=100)] = 100
    bottom: Annotated[int, Field(ge=0, le=100)] = 100

    @model_validator(mode="after")
    def _has_a_size(self) -> Area:
        if self.left >= self.right or self.top >= self.bottom:
            raise ValueError("the area is empty: left must be less than right, top less than bottom")
        return self


class Recognise(Strict):
    """How to tell that this mapping is the right one. All texts are looked for on every page."""

    all: tuple[Phrase, ...] = ()
    any: tuple[Phrase, ...] = ()
    none: tuple[Phrase, ...] = ()


class FieldRule(Strict):
    """One value: where to look (page, area, after, before), how to find it (label, pattern, area alone), what it is.

    With a label, the value is what stands beside it. With a pattern, it is what matches in a line of text. With
    both, the pattern picks from what stands beside the label. With neither, it is all that stands in the area.
    """

    type: ValueType = "text"
    decimals: Decimals = None
    label: Phrases | None = None
    direction: Literal["right", "below", "block"] = Field(
        "right",
        description="`right`: on the label's line, up to a wide gap or the next label. `below`: the lines under the"
        " label. `block`: what follows the label on its line and the lines under it.",
    )
    pattern: Pattern | None = None
    constant: str | None = Field(None, description="A fixed value that is not on the page.")
    page: Literal["first", "last", "any"] = "any"
    area: Area | None = None
    after: Phrase | None = Field(None, description="Only below or right of this text on the same page.")
    before: Phrase | None = Field(None, description="Only above or left of this text on the same page.")
    until: tuple[Phrase, ...] = Field((), description="`below` and `block` end before a line that begins with one.")
    lines: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?(-([1-9][0-9]?)?)?$")] = Field(
        "1",
        description="Which lines of a `below`, a `block` or an area: `1`, `2-4` or `2-` for the second to the last.",
    )
    join: str = Field(" ", max_length=10, description="What is put between two lines.")
    pick: Literal["first", "last"] = Field("first", description="Which one, when it is found more than once.")
    required: bool = False
    default: str | None = Field(None, description="The value when it is not found, as it would be printed.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> FieldRule:
        if self.constant is not None and (self.label or self.pattern or self.area):
            raise ValueError("a constant is not looked for: leave out label, pattern and area")
        if self.constant is None and not (self.label or self.pattern or self.area):
            raise ValueError("say how to find it: a label, a pattern, an area or a constant")
        if self.required and self.default is not None:
            raise ValueError("a required field has no default")
        _decimals_are_of_decimals(self)
        return self


class ColumnRule(Strict):
    """One column, found by the words of its header and not by its position."""

    header: Phrases | None = Field(
        None, description="The header's words or alternatives to them. Left out in a table whose rows match a pattern."
    )
    type: ValueType = "text"
    decimals: Decimals = None
    required: bool = Field(False, description="Every row has it; a row without is a finding.")
    optional: bool = Field(False, description="The column itself may be missing from the table.")
    wraps: bool | None = Field(
        None, description="Whether its text may go on in the next line. By default texts do and other types do not."
    )
    join: str = Field(" ", max_length=10, description="What is put between the lines of a text that wraps.")
    pattern: Pattern | None = Field(None, description="What of the cell is the value.")
    empty: tuple[str, ...] = Field(("-",), description="Texts that stand for an empty cell.")
    default: str | None = Field(None, description="The value of an empty cell, as it would be printed.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> ColumnRule:
        _decimals_are_of_decimals(self)
        return self


class RowRule(Strict):
    """Where a row begins: at a line that has a value in a column, or at a line that matches a pattern.

    A pattern has named groups, one for each column; the table then needs no header.
    """

    begins: Name | None = None
    pattern: Pattern | None = None
    anchor: Literal["first", "middle"] = Field(
        "first", description="Which line of a wrapped row has the `begins` column: the first, or the one in the middle."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> RowRule:
        if (self.begins is None) == (self.pattern is None):
            raise ValueError("a row either begins with a column or matches a pattern")
        return self


class CarryRule(Strict):
    """Running sums at the foot of a page and at the top of the next: proof that no line is missing."""

    column: Name
    out: Phrases = Field(description="How a line begins that carries the sum forward.")
    into: Phrases = Field(description="How a line begins that brings it in.")


class TableRule(Strict):
    """A table that may run over many pages."""

    columns: dict[Name, ColumnRule] = Field(min_length=1, max_length=40)
    row: RowRule
    start: Phrases | None = Field(
        None, description="The table starts below a line that begins so; without a header only."
    )
    end: Phrases | None = Field(None, description="The table ends before a line that begins so.")
    skip: tuple[Phrase, ...] = Field((), description="Lines that begin so are not part of the table.")
    notes: dict[Name, Pattern] = Field(
        default_factory=dict, description="Lines that match become rows of their own with only this column."
    )
    carry: CarryRule | None = None
    computed: dict[Name, Expression] = Field(default_factory=dict, description="Values made for each row, in order.")
    required: bool = Field(True, description="The table has at least one row.")
    max_rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000


TitlePath = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}(\.[a-z][a-z0-9_]{0,63})?$")]
"""What a title is of: a field, a table, a computed value, a column as `lines.amount`, a check as `checks.subtotal`."""


def _in_english(given: object) -> object:
    return {"en": given} if isinstance(given, str) else given


Message = Annotated[
    dict[Literal["en", "id"], str],
    BeforeValidator(_in_english, json_schema_input_type=str | dict[Literal["en", "id"], str]),
]
"""A sentence in English, or one for each language."""


class CheckRule(Strict):
    """Something that must hold. What does not hold is a finding, and fails the document if it is required."""

    expect: Expression
    each: Name | None = Field(None, description="The table whose every row must hold it.")
    when: Expression | None = None
    required: bool = True
    message: Message | None = Field(
        None,
        description="What to tell a clerk. `{name}` is a value as printed in the document's locale, `{left}` and"
        " `{right}` are the two sides of the comparison, `{line}` is the row counted from 1.",
    )


class XmlNode(Strict):
    """An element: its value or its children, in this order."""

    name: Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][\w.-]*:)?[A-Za-z_][\w.-]*$")]
    value: Expression | None = None
    attributes: dict[str, Expression] = Field(default_factory=dict)
    children: tuple[XmlNode, ...] = ()
    each: Name | None = Field(None, description="One element for each row of this table.")
    when: Expression | None = Field(None, description="Left out unless this holds.")
    omit_empty: bool = Field(False, description="Left out when its value is empty; otherwise it stays, empty.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> XmlNode:
        if self.value is not None and self.children:
            raise ValueError(f"<{self.name}> has a value or children, not both")
        return self


class XmlRule(Strict):
    """The document to write."""

    root: XmlNode
    namespaces: dict[str, str] = Field(
        default_factory=dict, description="Prefix to address; the empty prefix is the default."
    )
    xsd: str | None = Field(None, description="A schema beside the mapping that the result must fit.")


class EmbeddedRule(Strict):
    """For hybrid PDFs: read the invoice that is embedded, and write it as it is (`cii`) or as UBL (`ubl`)."""

    output: Literal["cii", "ubl"]


class Mapping(Strict):
    """How one sort of document becomes data and XML. Versioned by its name and never changed."""

    format: Literal[1] = Field(description="The version of this language.")
    name: Name
    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    embedded: EmbeddedRule | None = None
    recognise: Recognise = Recognise()
    locale: Locale | None = None
    fields: dict[Name, FieldRule] = Field(default_factory=dict, max_length=200)
    tables: dict[Name, TableRule] = Field(default_factory=dict, max_length=5)
    lookups: dict[Name, dict[str, str]] = Field(
        default_factory=dict, description="Texts and what they become; case does not matter, `*` is for any other."
    )
    computed: dict[Name, Expression] = Field(
        default_factory=dict, description="Values made for the document, in order."
    )
    checks: dict[Name, CheckRule] = Field(default_factory=dict, max_length=100)
    titles: dict[TitlePath, Message] = Field(
        default_factory=dict,
        max_length=1_000,
        description="What a person calls a value, in English or for each language: `number`, `lines`, `lines.amount`,"
        " `checks.subtotal`. Without one, `tax_base` is called Tax base.",
    )
    xml: XmlRule | None = None

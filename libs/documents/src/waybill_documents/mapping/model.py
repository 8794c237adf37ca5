"""The mapping language: all keys of a mapping, with their defaults.

These classes are the schema. `json_schema.py` writes them as JSON Schema, `docs/mappings.md` explains them, and the
loader validates a mapping by them. Nothing here reads a document.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

from waybill_documents.expressions import Expression
from waybill_documents.messages import DocumentMessage, Mistake

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""The name of a mapping, field, table, column, lookup or computed value."""

Phrase = Annotated[str, StringConstraints(min_length=1, max_length=200)]
"""Printed words. Case, spacing and a closing colon do not matter; the order of the words does."""


def _several(given: object) -> object:
    return (given,) if isinstance(given, str) else given


Phrases = Annotated[
    tuple[Phrase, ...],
    Field(min_length=1, max_length=50),
    BeforeValidator(_several, json_schema_input_type=Phrase | tuple[Phrase, ...]),
]
"""One phrase or several alternatives."""

Pattern = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
"""A regular expression for RE2, which always takes linear time; its first group, if any, is the value."""

SheetChoice = Annotated[int, Field(ge=1, le=1000)] | Annotated[str, StringConstraints(min_length=1, max_length=100)]
"""A sheet of a workbook, by its number or its name. Case and spacing of names do not matter."""

_ON_SHEET = "Only on this sheet of a workbook: its name, or its number, hidden sheets included. No effect elsewhere."

CellRange = Annotated[str, StringConstraints(pattern=r"^[A-Z]{1,3}[1-9][0-9]{0,6}(:[A-Z]{1,3}[1-9][0-9]{0,6})?$")]
"""Cells of a sheet: `C7` or `B2:D9`."""

ValueType = Literal["text", "digits", "integer", "decimal", "date"]

Decimals = Annotated[
    int | None,
    Field(
        ge=0,
        le=30,
        description="The most digits after the decimal sign of a `decimal`; a number with more is unreadable."
        " This tells twelve and a half from twelve and a half thousand in `12,500`.",
    ),
]


def _decimals_are_of_decimals(rule: FieldRule | ColumnRule) -> None:
    if rule.decimals is not None and rule.type != "decimal":
        raise Mistake(DocumentMessage("mapping.decimals_of_other_type", type=rule.type))


class Strict(BaseModel):
    """The base of all rules: unknown keys are refused, and a loaded mapping cannot be changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Locale(Strict):
    """How numbers and dates are printed: a language, and the differences from it."""

    base: Literal["de", "en", "es", "fr", "id", "it", "nl", "pl", "pt"]
    decimal: Literal[",", "."] | None = None
    group: tuple[Literal[".", ",", " ", "'"], ...] | None = None
    dates: tuple[str, ...] | None = Field(None, description="Formats like `d MMMM yyyy`, tried in order.")
    months: dict[str, Annotated[int, Field(ge=1, le=12)]] | None = Field(
        None, description="Further names of months, with their numbers."
    )
    currencies: tuple[str, ...] | None = Field(
        None, description="Signs before or after an amount, with or without a space."
    )


class Area(Strict):
    """A part of the page in percent of its width and height."""

    left: Annotated[int, Field(ge=0, le=100)] = 0
    top: Annotated[int, Field(ge=0, le=100)] = 0
    right: Annotated[int, Field(ge=0, le=100)] = 100
    bottom: Annotated[int, Field(ge=0, le=100)] = 100

    @model_validator(mode="after")
    def _has_a_size(self) -> Area:
        if self.left >= self.right or self.top >= self.bottom:
            raise Mistake(DocumentMessage("mapping.empty_area"))
        return self


class Recognise(Strict):
    """How to recognise a document for this mapping. All phrases are searched for on every page.

    A mapping for embedded invoices needs none of this, because it is recognised by the attachment.
    """

    all: tuple[Phrase, ...] = ()
    any: tuple[Phrase, ...] = ()
    none: tuple[Phrase, ...] = ()
    preference: Annotated[int, Field(ge=0, le=9)] = Field(
        0,
        description="Of mappings that recognise a document equally well, the one with the highest preference is taken.",
    )


class FieldRule(Strict):
    """One value: where to search (page, area, after, before), how to find it (label, pattern, area alone), its type.

    With a label, the value is the text beside it. With a pattern, it is the match in a line of text. With both, the
    pattern picks a part of the text beside the label. With neither, it is all text in the area.
    """

    type: ValueType = "text"
    decimals: Decimals = None
    label: Phrases | None = None
    direction: Literal["right", "below", "block"] = Field(
        "right",
        description="`right`: on the label's line, up to a wide gap or the next label. `below`: the lines under the"
        " label. `block`: the rest of the label's line and the lines under it.",
    )
    pattern: Pattern | None = None
    constant: str | None = Field(None, description="A fixed value that is not on the page.")
    page: Literal["first", "last", "any"] = "any"
    area: Area | None = None
    sheet: SheetChoice | None = Field(None, description=_ON_SHEET)
    cells: CellRange | None = Field(None, description="Only in these cells of a sheet: `C7` or `B2:D9`.")
    after: Phrase | None = Field(None, description="Search only below or to the right of this text on the same page.")
    before: Phrase | None = Field(None, description="Search only above or to the left of this text on the same page.")
    until: tuple[Phrase, ...] = Field(
        (), description="`below` and `block` end before a line that begins with one of these."
    )
    lines: Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]?(-([1-9][0-9]?)?)?$")] = Field(
        "1",
        description="Which lines of a `below`, a `block` or an area: `1`, `2-4` or `2-` for the second to the last.",
    )
    wraps: bool = Field(
        False,
        description="Whether the pattern may match across the end of a line, as in running text. The lines of a"
        " paragraph are then joined.",
    )
    join: str = Field(" ", max_length=10, description="The text between two joined lines.")
    pick: Literal["first", "last"] = Field("first", description="Which one to use when several are found.")
    required: bool = False
    default: str | None = Field(None, description="The value when it is not found, in the document's spelling.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> FieldRule:
        searched = self.label or self.pattern or self.area or self.cells
        if self.constant is not None and searched:
            raise Mistake(DocumentMessage("mapping.constant_is_not_searched"))
        if self.constant is None and not searched:
            raise Mistake(DocumentMessage("mapping.no_way_to_find"))
        if self.required and self.default is not None:
            raise Mistake(DocumentMessage("mapping.required_with_default"))
        if self.wraps and self.pattern is None:
            raise Mistake(DocumentMessage("mapping.wraps_without_pattern"))
        _decimals_are_of_decimals(self)
        return self


class ColumnRule(Strict):
    """One column. It is found by the words of its header, not by its position."""

    header: Phrases | None = Field(
        None, description="The words of the header, or alternatives. Not needed if the rows match a pattern."
    )
    after: Name | None = Field(None, description="For a column without a header: the column to the left of it.")
    before: Name | None = Field(None, description="For a column without a header: the column to the right of it.")
    type: ValueType = "text"
    decimals: Decimals = None
    required: bool = Field(False, description="A row without this value is a finding.")
    optional: bool = Field(False, description="Whether the table may lack the whole column.")
    wraps: bool | None = Field(
        None, description="Whether its text can continue in the next line. By default texts can and other types cannot."
    )
    join: str = Field(" ", max_length=10, description="The text between the joined lines of a text that wraps.")
    pattern: Pattern | None = Field(None, description="The part of the cell that is the value.")
    empty: tuple[str, ...] = Field(("-",), description="Texts that mean an empty cell.")
    default: str | None = Field(None, description="The value of an empty cell, in the document's spelling.")

    @model_validator(mode="after")
    def _says_one_thing(self) -> ColumnRule:
        if sum(each is not None for each in (self.header, self.after, self.before)) > 1:
            raise Mistake(DocumentMessage("mapping.one_way_to_find_a_column"))
        _decimals_are_of_decimals(self)
        return self


class RowRule(Strict):
    """Where a row begins: at a line with a value in a certain column, or at a line that matches a pattern.

    A pattern has a named group for each column; the table then needs no header.
    """

    begins: Name | None = None
    pattern: Pattern | None = None
    anchor: Literal["first", "middle"] = Field(
        "first", description="Which line of a wrapped row has the `begins` column: the first or the middle one."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> RowRule:
        if (self.begins is None) == (self.pattern is None):
            raise Mistake(DocumentMessage("mapping.row_rule"))
        return self


class NoteRule(Strict):
    """Lines that match a pattern and become rows of their own. A pattern alone is a note that keeps the match."""

    pattern: Pattern
    keep: Literal["match", "line"] = Field(
        "match", description="What the row has: the pattern's first group or match, or the whole line."
    )


def _as_note(given: object) -> object:
    return {"pattern": given} if isinstance(given, str) else given


Note = Annotated[NoteRule, BeforeValidator(_as_note, json_schema_input_type=Pattern | NoteRule)]
"""A note, or only its pattern."""


class CarryRule(Strict):
    """Sums that are carried from one page to the next. They prove that no line is missing."""

    column: Name
    out: Phrases = Field(description="The beginning of a line that carries the sum forward.")
    into: Phrases = Field(description="The beginning of a line that brings the sum in.")


class TableRule(Strict):
    """A table, which can span many pages."""

    columns: dict[Name, ColumnRule] = Field(min_length=1, max_length=40)
    row: RowRule
    sheet: SheetChoice | None = Field(None, description=_ON_SHEET)
    start: Phrases | None = Field(
        None, description="The table starts below a line that begins with one of these; only without a header."
    )
    end: Phrases | None = Field(None, description="The table ends before a line that begins with one of these.")
    skip: tuple[Phrase, ...] = Field((), description="Lines that begin with one of these are ignored.")
    notes: dict[Name, Note] = Field(
        default_factory=dict, description="Matching lines become rows of their own with only this column."
    )
    carry: CarryRule | None = None
    computed: dict[Name, Expression] = Field(
        default_factory=dict, description="Values computed for each row, in order."
    )
    required: bool = Field(True, description="The table must have at least one row.")
    max_rows: Annotated[int, Field(ge=1, le=100_000)] = 10_000


TitlePath = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,63}(\.[a-z][a-z0-9_]{0,63})?$")]
"""A field, a table, a computed value, a column such as `lines.amount`, or a check such as `checks.subtotal`."""


def _in_english(given: object) -> object:
    return {"en": given} if isinstance(given, str) else given


Wording = Annotated[
    dict[Literal["en", "id"], str],
    BeforeValidator(_in_english, json_schema_input_type=str | dict[Literal["en", "id"], str]),
]
"""A sentence in English, or one for each language."""


class CheckRule(Strict):
    """A condition that must hold. If it does not, it is a finding, and a required check fails the document."""

    expect: Expression
    each: Name | None = Field(None, description="The table whose rows are all checked.")
    when: Expression | None = None
    required: bool = True
    message: Wording | None = Field(
        None,
        description="The message for a clerk. `{name}` is a value in the document's spelling, `{left}` and `{right}`"
        " are the two sides of the comparison, `{line}` is the row, counted from 1.",
    )


class XmlNode(Strict):
    """An element with a value or children."""

    name: Annotated[str, StringConstraints(pattern=r"^([A-Za-z_][\w.-]*:)?[A-Za-z_][\w.-]*$")]
    value: Expression | None = None
    attributes: dict[str, Expression] = Field(default_factory=dict)
    children: tuple[XmlNode, ...] = ()
    each: Name | None = Field(None, description="One element for each row of this table.")
    when: Expression | None = Field(None, description="The element is left out unless this holds.")
    omit_empty: bool = Field(
        False, description="The element is left out when it is empty; otherwise an empty element is written."
    )

    @model_validator(mode="after")
    def _says_one_thing(self) -> XmlNode:
        if self.value is not None and self.children:
            raise Mistake(DocumentMessage("mapping.xml.value_and_children", name=self.name))
        return self


class XmlRule(Strict):
    """The XML document to write."""

    root: XmlNode
    namespaces: dict[str, str] = Field(
        default_factory=dict, description="Addresses by prefix; the empty prefix is the default namespace."
    )
    xsd: str | None = Field(None, description="A schema beside the mapping, which the result must fit.")


class EmbeddedRule(Strict):
    """For e-invoices: read the invoice that a hybrid PDF embeds, and write it as CII or UBL.

    An invoice that has that syntax already stays as it is.
    """

    output: Literal["cii", "ubl"]
    loss: Literal["strict", "lenient"] = Field(
        "strict",
        description="`strict` refuses an invoice with details that the other syntax has no place for; `lenient` drops"
        " them and lists each one.",
    )


class Mapping(Strict):
    """How one kind of document becomes data and XML. Its name has a version, and it is never changed."""

    format: Literal[1] = Field(description="The version of this language.")
    name: Name
    title: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    review_below: Annotated[int, Field(ge=0, le=100)] | None = Field(
        None,
        description="A person has to look at the result first if one of its values has a lower confidence. 0: never."
        " Without it, whoever runs Waybill decides.",
    )
    embedded: EmbeddedRule | None = None
    recognise: Recognise = Recognise()
    sheets: Annotated[tuple[SheetChoice, ...], Field(min_length=1, max_length=100)] | None = Field(
        None, description="For workbooks: the sheets to read, by name or number. Without it, all visible ones."
    )
    locale: Locale | None = None
    fields: dict[Name, FieldRule] = Field(default_factory=dict, max_length=200)
    tables: dict[Name, TableRule] = Field(default_factory=dict, max_length=5)
    lookups: dict[Name, dict[str, str]] = Field(
        default_factory=dict, description="Replacements of texts; case does not matter, `*` is for any other text."
    )
    computed: dict[Name, Expression] = Field(
        default_factory=dict, description="Values computed for the document, in order."
    )
    checks: dict[Name, CheckRule] = Field(default_factory=dict, max_length=100)
    titles: dict[TitlePath, Wording] = Field(
        default_factory=dict,
        max_length=1_000,
        description="Titles of values for people, in English or for each language: `number`, `lines`, `lines.amount`,"
        " `checks.subtotal`. Without a title, `tax_base` is called Tax base.",
    )
    xml: XmlRule | None = None

"""`docs/mappings.md` is correct: its tutorial runs, and its tables are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

from support import sheets
from support.pages import extract_pages, page, table
from waybill_cli.main import app
from waybill_documents import confidence
from waybill_documents.document_reader import read_data
from waybill_documents.expressions import Expression, Scope
from waybill_documents.expressions.functions import FUNCTIONS
from waybill_documents.expressions.text_functions import as_text
from waybill_documents.faults import FaultCode
from waybill_documents.locales import MONTHS, locale_rules
from waybill_documents.mapping import model
from waybill_documents.mapping.loader import load, parse
from waybill_documents.reading import judged
from waybill_documents.stages import Stages
from waybill_documents.value_text import read, reader, show

PAGE = (Path(__file__).parents[2] / "docs/mappings.md").read_text(encoding="utf-8")


class Step(NamedTuple):
    """A step of the tutorial: its whole file, and what the command shows for it."""

    title: str
    file: str
    shown: str


def steps() -> Iterator[Step]:
    for part in PAGE.partition("\n## Reference")[0].split("\n### Step ")[1:]:
        title = part.partition("\n")[0]
        file = re.search(r"```json\n(.*?)```", part, re.DOTALL)
        shown = re.search(r"```console\n(.*?)```", part, re.DOTALL)
        if file and shown:
            yield Step(title, file[1], shown[1])


STEPS = list(steps())


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments), env={"COLUMNS": "80"}, prog_name="waybill")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def assert_shown(wanted: str, seen: str) -> None:
    """Assert that the output has every line of the page, in order; `⋮` means omitted lines."""
    lines = iter(seen.splitlines())
    for line in wanted.splitlines():
        if line.strip() and line != "⋮" and not line.startswith("$ "):
            assert line in lines, f"{line!r} is not shown, or not there:\n{seen}"


@pytest.fixture
def invoice(shared_data: Path) -> str:
    return str(shared_data / "invoices/vendors/QualityHosting.pdf")


def test_the_tutorial_goes_from_a_name_to_xml() -> None:
    assert [step.title.partition(":")[0] for step in STEPS] == ["1", "2", "3", "4", "5", "6"]
    assert parse(STEPS[-1].file.encode()).xml is not None


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.title)
def test_a_step_shows_what_the_page_says(step: Step, invoice: str, tmp_path: Path) -> None:
    (tmp_path / "hosting.json").write_text(step.file, encoding="utf-8")
    command = step.shown.partition("\n")[0].split()
    assert command[:4] == ["$", "waybill", "mapping", "try"]
    more = [str(tmp_path / word) if word[0] != "-" else word for word in command[6:]]
    code, seen = run("mapping", "try", invoice, str(tmp_path / "hosting.json"), *more)
    assert_shown(step.shown, seen)
    assert code == (1 if "Not converted" in step.shown else 0)
    for word in more:
        assert word.startswith("-") or Path(word).stat().st_size > 100


def test_the_lines_of_the_document_are_shown_as_the_page_says(invoice: str) -> None:
    wanted = re.search(r"```console\n\$ waybill mapping text.*?```", PAGE, re.DOTALL)
    assert wanted is not None
    code, seen = run("mapping", "text", invoice, "--page", "1")
    assert code == 0
    assert_shown(wanted[0].replace("```console\n", "").replace("```", ""), seen)


def test_the_sentence_of_a_failed_check_is_the_one_the_page_quotes(tmp_path: Path) -> None:
    (tmp_path / "mapping.json").write_text(STEPS[-1].file, encoding="utf-8")
    lines = [
        {"no": number, "quantity": 2 if number == 3 else 1, "name": "x", "price": "5.39", "amount": "5.39"}
        for number in (1, 2, 3)
    ]
    data = {"number": "1", "date": "2014-05-07", "currency": "EUR", "total": "16.17", "lines": lines}
    (tmp_path / "data.json").write_text(json.dumps(data))
    reading = read_data(tmp_path / "data.json", load(tmp_path), Stages(lambda: 0.0))
    assert [finding.message for finding in reading.findings] == ["line 3: 2 × 5,39 is 10,78, the invoice says 5,39"]
    assert f"`{reading.findings[0].message}`" in PAGE


# The reference.


def section(title: str) -> list[list[str]]:
    """The rows of all tables below a heading, cell by cell."""
    start = PAGE.index(f"\n{title}\n") + len(title) + 2
    ends = [position for mark in ("\n## ", "\n### ", "\n#### ") if (position := PAGE.find(mark, start)) > 0]
    rows = [line for line in PAGE[start : min(ends, default=None)].splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows if not row.startswith("| ---")]


REFERENCE = {
    "### The mapping": model.Mapping,
    "### `recognise`": model.Recognise,
    "### `locale`": model.Locale,
    "### Fields": model.FieldRule,
    "### Areas": model.Area,
    "### Tables": model.TableRule,
    "### Columns": model.ColumnRule,
    "### Rows": model.RowRule,
    "### Notes": model.NoteRule,
    "### Carry": model.CarryRule,
    "### Checks": model.CheckRule,
    "### XML": model.XmlRule,
    "### Elements": model.XmlNode,
    "### E-invoices": model.EmbeddedRule,
}


def rules() -> set[type[BaseModel]]:
    return {
        each
        for each in vars(model).values()
        if isinstance(each, type) and issubclass(each, model.Strict) and each is not model.Strict
    }


def test_every_part_of_the_language_has_a_section() -> None:
    assert rules() == set(REFERENCE.values())


@pytest.mark.parametrize(("title", "rule"), REFERENCE.items(), ids=[rule.__name__ for rule in REFERENCE.values()])
def test_every_key_is_listed_with_its_default(title: str, rule: type[BaseModel]) -> None:
    listed = {row[0].strip("`"): row for row in section(title) if row[0].startswith("`") and len(row) == 4}
    assert set(listed) == set(rule.model_fields)
    for name, its in rule.model_fields.items():
        assert listed[name][2] in _defaults(its.get_default(call_default_factory=True), required=its.is_required()), (
            name
        )


def _defaults(value: Any, *, required: bool) -> set[str]:
    """The accepted texts for a default. The page describes None in words."""
    if required:
        return {"required"}
    match value:
        case None:
            return {"none", "of the language", "of the language and English", "the common ones", "English"} | {
                "texts do",
                "made from the expression",
                "whoever runs Waybill decides",
            }
        case bool():
            return {str(value).lower()}
        case int():
            return {str(value)}
        case str():
            return {f"`{value}`", *(["one space"] if value == " " else [])}
        case dict() | model.Recognise():
            return {"{}"}
        case ():
            return {"[]"}
        case (only,):
            return {f"`{only}`"}
        case _:
            raise AssertionError(value)


def test_every_function_is_listed_and_none_besides() -> None:
    listed = [row for row in section("### Expressions") if row[0] != "function"]
    assert listed == [
        [f"`{function.signature}`", function.gives.value, function.doc] for function in FUNCTIONS.values()
    ]


EXAMPLES = [row for row in section("#### Examples of expressions") if row[0] != "expression"]


@pytest.mark.parametrize(("expression", "shown"), EXAMPLES, ids=[row[0] for row in EXAMPLES])
def test_an_expression_gives_what_the_page_says(expression: str, shown: str) -> None:
    scope = Scope({}, reader=reader(model.Locale(base="de")))
    value = as_text(Expression(expression.strip("`")).evaluate(scope))
    assert shown == (f"`{value}`" if value is not None else "empty")


def test_every_finding_is_listed() -> None:
    listed = {code for row in section("### Findings") for code in re.findall(r"`(\w+)`", row[0])}
    assert listed == {code.value for code in FaultCode}


def test_confidence_is_derived_as_the_page_says() -> None:
    said = {row[1]: row[0] for row in section("### Confidence")}
    assert (
        said["found beside a label, or below a header"]
        == str(confidence.BASE["label"])
        == str(confidence.BASE["column"])
    )
    assert said["found by a pattern alone"] == str(confidence.BASE["pattern"])
    assert said["found by an area alone"] == str(confidence.BASE["area"])
    assert said["the same rule also found a different value elsewhere"] == f"−{confidence.AMBIGUOUS}"
    crossed = "the edge between two columns crosses one of its words, or a dash before a number may be its minus"
    assert said[crossed] == f"−{confidence.DOUBTFUL}"
    assert said["one of its lines may belong to the next row"] == f"−{confidence.DOUBTFUL}"
    assert said["not found, and not required"] == str(confidence.NOT_FOUND)
    assert said["the default, because nothing is printed; no check raises it"] == str(confidence.FROM_DEFAULT)
    assert said["a check proves it: it equals what other values give"] == str(confidence.PROVED)
    outweighed = "one of its checks does not hold; this outweighs any number that do"
    assert said[outweighed] == f"at most {confidence.DISPROVED}"


@pytest.mark.parametrize("base", MONTHS)
def test_languages_print_as_the_page_says(base: Any) -> None:
    rules = locale_rules(model.Locale(base=base))
    [row] = [row for row in section("### `locale`") if row[0].startswith(f"`{base}` ")]
    assert row[1].strip("`") == show(Decimal("1234567.89"), rules).replace("\u00a0", " ")
    assert re.findall(r"`([^`]+)`", row[2]) == [each.text for each in rules.dates]


def test_numbers_are_read_as_the_page_says() -> None:
    german = locale_rules(model.Locale(base="de"))
    for text in ("1.234.567,89", "1234567,89"):
        assert read(text, "decimal", german) == Decimal("1234567.89")
    assert read("1.234.567", "decimal", german) == Decimal("1234567")
    assert read("(12,50)", "decimal", german) == Decimal("-12.50")
    assert read("5,-", "decimal", german) == Decimal(5)
    with pytest.raises(ValueError, match="is not a number"):
        read("12.34.5", "decimal", german)
    spoken = locale_rules(model.Locale(base="fr", dates=("d 'de' MMMM yyyy",)))
    assert read("7 de août 2025", "date", spoken) == date(2025, 8, 7)


EXAMPLE_FILES = [
    example
    for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    if "gives" in (example := json.loads(text)) and "mapping" in example
]


@pytest.mark.parametrize("example", EXAMPLE_FILES, ids=lambda example: ", ".join(example["gives"]))
def test_an_example_gives_what_the_page_says(example: dict[str, Any], tmp_path: Path) -> None:
    mapping = sheets.loaded(**{"locale": {"base": "en"}} | example["mapping"])
    if "cells" in example:
        rows = [[_cell(cell) for cell in row] for row in example["cells"]]
        reading = sheets.read_sheets(sheets.workbook(tmp_path / "a.xlsx", {"Sheet1": rows}), mapping)
    else:
        extraction = extract_pages(mapping.mapping, page(*table(example["printed"])))
        reading = judged(mapping, extraction, {"kind": "pdf"}, Stages(lambda: 0.0))
    assert reading.findings == []
    assert reading.to_json()["data"] == example["gives"]


def _cell(given: Any) -> Any:
    """A cell of an example; dates have no JSON of their own."""
    if isinstance(given, dict):
        return float(date.fromisoformat(given["date"]).toordinal() - date(1899, 12, 30).toordinal()), "date"
    return given


def test_links_within_the_page_lead_somewhere() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) - anchors == set()

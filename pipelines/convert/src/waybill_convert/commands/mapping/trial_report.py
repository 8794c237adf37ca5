"""Prints a trial on a terminal: fields, tables, checks, findings, XML and time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from waybill.console.tables import Column, print_facts, print_table
from waybill.console.terminal import UNLIMITED, output, print_line, safe, styled
from waybill_convert.commands.mapping.document_argument import finding_text
from waybill_convert.commands.mapping.table_rows import print_rows, print_wrapped
from waybill_convert.commands.mapping.trial import Trial
from waybill_convert.doubts import doubtful
from waybill_documents.checks import CheckResult
from waybill_documents.faults import Finding
from waybill_documents.mapping.model import FieldRule, Mapping
from waybill_documents.provenance import plain
from waybill_documents.values import Value

_XML_LINES = 16
_MOST_FINDINGS = 12
_MOST_DOUBTS = 5


def print_report(trial: Trial, *, rows: int, language: str) -> None:
    """Print everything that people need to judge the mapping."""
    mapping = trial.loaded.mapping
    print_title(mapping)
    print_facts(list(_facts(trial)))
    reading = trial.reading
    if reading is not None:
        if reading.extracted.fields:
            _heading("Fields")
            _print_fields(reading.extracted.fields, mapping, on_sheets=trial.on_sheets)
        for name, found in reading.extracted.tables.items():
            _heading(f"{name}: {_counted(len(found), 'row')}")
            print_rows(found, rows, mapping.tables.get(name))
        if reading.checks:
            _heading("Checks")
            _print_checks(reading.checks, language)
    if trial.findings:
        _heading("Findings")
        _print_findings(trial.findings, language, on_sheets=trial.on_sheets)
    if trial.xml is not None:
        _heading("XML")
        _print_xml(trial.xml)
    _heading("Time")
    spent = " · ".join(f"{stage} {_milliseconds(taken)}" for stage, taken in trial.stages.items())
    print_wrapped(f"{spent} · total {_milliseconds(trial.milliseconds)} ms" if spent else "none")
    print_line()
    print_line(_verdict(trial))


def print_title(mapping: Mapping) -> None:
    """Print a mapping's name and title."""
    console = output()
    for line in Text.assemble((safe(mapping.name), "bold"), " · ", safe(mapping.title)).wrap(console, console.width):
        line.rstrip()
        print_line(line)


def confidence_style(confidence: int) -> str:
    """The colour of a confidence, with the same steps as on the HTML page."""
    if confidence >= 95:
        return "green"
    return "" if confidence >= 80 else "yellow" if confidence >= 60 else "red"


def _facts(trial: Trial) -> Iterator[tuple[str, Text]]:
    what = "sheet" if trial.on_sheets else "page"
    pages = f", {_counted(len(trial.pages), what)}" if trial.pages else ""
    yield "document", styled(f"{trial.source.name}{pages}")
    yield "mapping", styled(f"sha256 {trial.loaded.sha256[:16]}…")
    yield "recognised", _recognised(trial)
    for each in trial.reading.source.get("attachments", ()) if trial.reading is not None else ():
        yield "attachment", styled(f"{each['name']}, {each['media_type']}, {each['bytes']:,} bytes")
    if (below := trial.loaded.mapping.review_below) and trial.reading is not None:
        yield "review", _in_doubt(doubtful(trial.reading.to_json(), below), below)


def _in_doubt(paths: Sequence[str], below: int) -> Text:
    """What a person would have to look at before anybody gets the result."""
    if not paths:
        return styled(f"nothing is in doubt (below {below})")
    more = f" and {len(paths) - _MOST_DOUBTS} more" if len(paths) > _MOST_DOUBTS else ""
    return styled(f"in doubt (below {below}): {', '.join(paths[:_MOST_DOUBTS])}{more}", "yellow")


def _recognised(trial: Trial) -> Text:
    rule: Mapping = trial.loaded.mapping
    if trial.reading is None:
        return styled("no", "red")
    if rule.embedded is not None:
        attachment = trial.reading.source.get("attachment")
        return styled(f"yes, by its attachment {attachment}" if attachment else "yes, an e-invoice as XML", "green")
    wanted = [*rule.recognise.all, *rule.recognise.any]
    if not wanted and not rule.recognise.none:
        return styled("yes, like any document, because the mapping has no `recognise`", "yellow")
    return styled(f"yes, by {', '.join(f'“{phrase}”' for phrase in wanted)}" if wanted else "yes", "green")


def _print_fields(fields: dict[str, Value], mapping: Mapping, *, on_sheets: bool) -> None:
    columns = [
        Column("NAME", most=24),
        Column("SURE", right=True),
        Column("CELL", most=24, drop=2) if on_sheets else Column("PAGE", right=True, drop=2),
        Column("VALUE", most=30),
        Column("PRINTED", drop=1, least=12),
    ]
    print_table(columns, [_field(name, value, mapping.fields.get(name)) for name, value in fields.items()], indent=2)


def _field(name: str, value: Value, rule: FieldRule | None) -> Sequence[Text]:
    shown = plain(value.value)
    if value.value is None:
        text = styled("unreadable", "red") if value.places else styled("not found", "dim")
    else:
        text = styled(str(shown).replace("\n", " ⏎ "))
    printed = (
        styled(value.raw.replace("\n", " ⏎ "), "dim") if value.raw and value.raw != shown else _origin(value, rule)
    )
    return (
        styled(name),
        styled(value.confidence, confidence_style(value.confidence)),
        styled(value.places[0].cell or value.places[0].page if value.places else ""),
        text,
        printed,
    )


def _origin(value: Value, rule: FieldRule | None) -> Text:
    """Where a value comes from that is not printed on the document."""
    if value.value is None or value.places or value.raw:
        return Text()
    if value.rule.startswith("computed."):
        return styled("computed", "dim")
    return styled("constant" if rule is not None and rule.constant is not None else "default", "dim")


def _print_checks(checks: Sequence[CheckResult], language: str) -> None:
    marks = {True: ("✓", "green"), False: ("✗", "red"), None: ("–", "dim")}
    table = []
    for result in checks:
        mark, style = marks[result.passed]
        if result.passed is False and not result.required:
            style = "yellow"
        first = finding_text(result.findings[0], language) if result.findings else ""
        more = f" (and {len(result.findings) - 1} more)" if len(result.findings) > 1 else ""
        remark = f"{first}{more}" if first or result.passed is not None else "did not apply"
        if result.passed is False and not result.required:
            remark = f"{remark} (not required)"
        table.append((styled(mark, style), styled(result.name), styled(remark, style if first else "dim")))
    print_table([Column(""), Column("", most=28), Column("", least=30, wraps=True)], table, indent=2)


def _print_findings(findings: Sequence[Finding], language: str, *, on_sheets: bool) -> None:
    shown = findings[:_MOST_FINDINGS]
    print_table(
        [
            Column("CELL", most=24) if on_sheets else Column("PAGE", right=True),
            Column("CODE", drop=1),
            Column("WHAT IS WRONG", least=30, wraps=True),
        ],
        [
            (
                styled(finding.cell or finding.page or "–"),
                styled(finding.code.value, "dim"),
                styled(finding_text(finding, language), "red"),
            )
            for finding in shown
        ],
        indent=2,
    )
    if len(findings) > len(shown):
        print_line(styled(f"  … and {len(findings) - len(shown)} more", "dim"))


def _print_xml(xml: bytes) -> None:
    lines = xml.decode().splitlines()
    width = output().width
    for line in lines[:_XML_LINES]:
        shown = styled(f"  {line}")
        if width < UNLIMITED:
            shown.truncate(width, overflow="ellipsis")
        print_line(shown)
    if len(lines) > _XML_LINES:
        print_line(styled(f"  … {len(lines) - _XML_LINES} more lines; -o FILE writes them all", "dim"))


def _verdict(trial: Trial) -> Text:
    if trial.fault is None:
        words = "Converted." if trial.xml is not None else "Read. The mapping writes no XML yet."
        return styled(words, "bold green")
    count = len(trial.findings)
    if trial.reading is None:
        return styled("Not converted.", "bold red")
    return styled(f"Not converted: {_counted(count, 'finding')}.", "bold red")


def _heading(text: str) -> None:
    print_line()
    print_line(styled(text, "bold"))


def _milliseconds(spent: float) -> str:
    return f"{spent:.0f}" if spent >= 10 else f"{spent:.1f}"


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"

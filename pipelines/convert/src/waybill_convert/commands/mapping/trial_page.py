"""The pages of a document with the values drawn on them, as one self-contained HTML file.

It loads no script, font or image; its own content security policy forbids that. Hovering over a box shows its value,
and clicking a value in the list leads to its box. Both work with plain HTML and CSS.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources

from waybill_convert.commands.mapping.document_argument import finding_text
from waybill_convert.commands.mapping.trial import Trial
from waybill_documents.faults import DocumentRejected, Finding
from waybill_documents.geometry import Box, Page
from waybill_documents.pdf.page_images import PageImage, page_images
from waybill_documents.pdf.pdf_limits import PdfLimits
from waybill_documents.pdf.reader import opened
from waybill_documents.provenance import plain
from waybill_documents.values import Value

_MOST_PAGES = 60
"""The most pages that are drawn. A browser has trouble with more, and so have people."""


def page_of(trial: Trial, *, language: str) -> str:
    """The whole file."""
    style = resources.files("waybill_convert.commands.mapping").joinpath("page.css").read_text(encoding="utf-8")
    mapping = trial.loaded.mapping
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{escape(trial.source.name)} · {escape(mapping.title)}</title>",
            f"<style>\n{style}</style>",
            "<body>",
            *_head(trial),
            "<main>",
            *_pages(trial, language),
            '<aside aria-label="What was found">',
            *_findings(trial.findings, language),
            *_checks(trial, language),
            *_fields(trial),
            *_tables(trial),
            "</aside>",
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _head(trial: Trial) -> Iterator[str]:
    mapping, count = trial.loaded.mapping, len(trial.findings)
    if trial.fault is None:
        verdict = f'<span class="verdict good">{"converted" if trial.xml is not None else "read"}</span>'
    else:
        verdict = f'<span class="verdict bad">{count} finding{"" if count == 1 else "s"}</span>'
    facts = f"{mapping.name} · sha256 {trial.loaded.sha256[:12]} · {trial.milliseconds:.0f} ms"
    yield "<header>"
    yield f"<div><h1>{escape(trial.source.name)}</h1>"
    yield f"<p>{escape(mapping.title)}<br><small>{escape(facts)}</small></p></div>"
    yield (
        '<ul class="legend" aria-label="Confidence"><li class="c-sure">95–100</li><li class="c-likely">80–94</li>'
        '<li class="c-unsure">60–79</li><li class="c-doubtful">below 60</li></ul>'
    )
    yield f"{verdict}</header>"


# Pages


def _pages(trial: Trial, language: str) -> Iterator[str]:
    sizes = {page.number: page for page in trial.pages}
    boxes = _boxes(trial, language)
    yield '<section class="pages" aria-label="Pages">'
    if trial.on_sheets:
        yield '<p class="more">A sheet has no page image. Each value names its cell.</p></section>'
        return
    try:
        with opened(trial.source, PdfLimits()) as document:
            wanted = sorted(sizes) or list(range(1, len(document) + 1))
            turns = {page.number: page.turn for page in trial.pages}
            for picture in page_images(document, turns, wanted[:_MOST_PAGES]):
                yield from _drawn(picture, sizes.get(picture.page), boxes.get(picture.page, []), len(document))
            if len(wanted) > _MOST_PAGES:
                yield f'<p class="more">… and {len(wanted) - _MOST_PAGES} more pages, which are not drawn.</p>'
    except DocumentRejected as fault:
        yield f'<p class="more">{escape(fault.message)}</p>'
    yield "</section>"


def _drawn(picture: PageImage, page: Page | None, boxes: Sequence[str], count: int) -> Iterator[str]:
    source = f"data:image/png;base64,{b64encode(picture.png).decode()}"
    wide, high = (page.width, page.height) if page else (picture.width, picture.height)
    yield f'<figure id="page-{picture.page}"><div class="sheet" style="--w:{wide};--h:{high}">'
    yield f'<img src="{source}" width="{picture.width}" height="{picture.height}" alt="Page {picture.page}">'
    yield from boxes
    yield f"</div><figcaption>page {picture.page} of {count}</figcaption></figure>"


def _boxes(trial: Trial, language: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    middles = {page.number: page.width / 2 for page in trial.pages}
    for anchor, name, value in _values(trial):
        for position, place in enumerate(value.places):
            # A box on the right has its tip on the left, or the tip would be off the screen.
            side = " late" if place.box[0] > middles.get(place.page, 0) else ""
            colour = _colour(value.confidence) + side
            drawn = _box(place.box, anchor if position == 0 else "", colour, _tip(name, value))
            found.setdefault(place.page, []).append(drawn)
    for number, finding in enumerate(trial.findings):
        if finding.page is not None and finding.box is not None:
            tip = (
                f'<b>{escape(finding.code.value)}</b><span class="raw">{escape(finding_text(finding, language))}</span>'
            )
            side = " late" if finding.box[0] > middles.get(finding.page, 0) else ""
            found.setdefault(finding.page, []).append(_box(finding.box, f"finding-{number}", f"finding{side}", tip))
    return found


def _values(trial: Trial) -> Iterator[tuple[str, str, Value]]:
    if trial.reading is None:
        return
    for name, value in trial.reading.extracted.fields.items():
        yield f"field-{name}", name, value
    for table, rows in trial.reading.extracted.tables.items():
        for number, row in enumerate(rows):
            for column, value in row.items():
                yield f"{table}-{number}-{column}", f"{table}[{number}].{column}", value


def _box(box: Box, anchor: str, colour: str, tip: str) -> str:
    left, top, right, bottom = box
    place = f"--l:{left};--t:{top};--r:{right};--b:{bottom}"
    own = f' id="{anchor}"' if anchor else ""
    return f'<span class="box {colour}"{own} style="{place}" tabindex="0"><span class="tip">{tip}</span></span>'


def _tip(name: str, value: Value) -> str:
    shown = escape(str(plain(value.value)) if value.value is not None else "unreadable")
    raw = f'<span class="raw">printed “{escape(value.raw)}”</span>' if value.raw != shown else ""
    return (
        f"<b>{escape(name)}</b><span>{shown}</span>{raw}"
        f'<span class="rule">{escape(value.rule)} · {value.confidence} % sure</span>'
    )


def _colour(confidence: int) -> str:
    if confidence >= 95:
        return "c-sure"
    return "c-likely" if confidence >= 80 else "c-unsure" if confidence >= 60 else "c-doubtful"


# The lists beside the pages


def _findings(findings: Sequence[Finding], language: str) -> Iterator[str]:
    if not findings:
        return
    yield "<h2>What is wrong</h2><ol class='findings'>"
    for number, finding in enumerate(findings):
        page = f'<a href="#finding-{number}">page {finding.page}</a>' if finding.box else ""
        page = f"<small>{escape(finding.cell)}</small>" if finding.cell is not None else page
        yield f"<li>{escape(finding_text(finding, language))} {page}</li>"
    yield "</ol>"


def _checks(trial: Trial, language: str) -> Iterator[str]:
    if trial.reading is None or not trial.reading.checks:
        return
    words = {True: ("good", "holds"), False: ("bad", "fails"), None: ("none", "did not apply")}
    yield "<h2>Checks</h2><ul class='checks'>"
    for result in trial.reading.checks:
        colour, word = words[result.passed]
        why = f"<small>{escape(finding_text(result.findings[0], language))}</small>" if result.findings else ""
        yield f'<li class="{colour}"><span>{escape(result.name)}</span><em>{word}</em>{why}</li>'
    yield "</ul>"


def _fields(trial: Trial) -> Iterator[str]:
    if trial.reading is None or not trial.reading.extracted.fields:
        return
    yield "<h2>Fields</h2><table><tbody>"
    for name, value in trial.reading.extracted.fields.items():
        pill = f'<span class="pill {_colour(value.confidence)}">{value.confidence}</span>'
        cells = " ".join(place.cell for place in value.places if place.cell is not None)
        shown = _linked(f"field-{name}", value) + (f" <small>{escape(cells)}</small>" if cells else "")
        yield f"<tr><th>{escape(name)}</th><td>{shown}</td><td>{pill}</td></tr>"
    yield "</tbody></table>"


def _tables(trial: Trial) -> Iterator[str]:
    if trial.reading is None:
        return
    for table, rows in trial.reading.extracted.tables.items():
        names = list(dict.fromkeys(name for row in rows for name in row))
        yield f"<h2>{escape(table)} <small>{len(rows)} row{'' if len(rows) == 1 else 's'}</small></h2>"
        yield '<div class="wide"><table class="grid"><thead><tr><th></th>'
        yield "".join(_header(name, [row[name] for row in rows if name in row]) for name in names)
        yield "</tr></thead><tbody>"
        for number, row in enumerate(rows):
            cells = "".join(_cell(f"{table}-{number}-{name}", row.get(name)) for name in names)
            yield f"<tr><th>{number + 1}</th>{cells}</tr>"
        yield "</tbody></table></div>"


def _header(name: str, values: Sequence[Value]) -> str:
    number = ' class="number"' if any(_is_number(value) for value in values) else ""
    return f"<th{number}>{escape(name)}</th>"


def _is_number(value: Value) -> bool:
    return not isinstance(value.value, str | None)


def _cell(anchor: str, value: Value | None) -> str:
    if value is None or (value.value is None and not value.places):
        return "<td></td>"
    number = ' class="number"' if _is_number(value) else ""
    return f"<td{number}>{_linked(anchor, value)}</td>"


def _linked(anchor: str, value: Value) -> str:
    if value.value is None:
        shown = "<i>not found</i>" if not value.places else "<i>unreadable</i>"
    else:
        shown = escape(str(plain(value.value)))
    colour = _colour(value.confidence)
    if value.places and value.places[0].cell is not None:
        return f'<span class="{colour}" title="{escape(value.places[0].cell)}">{shown}</span>'
    return f'<a class="{colour}" href="#{anchor}">{shown}</a>' if value.places else f"<span>{shown}</span>"

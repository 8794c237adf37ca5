"""Every sentence for a person has a key, and every language has words for every key."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import pytest

from waybill import errors
from waybill.errors import Code
from waybill.messages import languages
from waybill.messages.catalogue import HOLE, catalogues, read
from waybill.pipelines import Pipeline, installed
from waybill.web.languages import for_scripts
from waybill_documents import catalogue
from waybill_documents.messages import sentences

ROOT = Path(__file__).parents[2]
PACKAGES = [path for folder in ("libs", "pipelines", "services", "cli") for path in (ROOT / folder).glob("**/src")]
SOURCES = sorted(path for package in PACKAGES for path in package.rglob("*.py"))
WEB = Path(str(files("waybill.web")))
PAGES = [Path(str(files(pipeline.pages))) for pipeline in installed() if pipeline.pages is not None]
ENGLISH, INDONESIAN = languages()["en"], languages()["id"]
OTHERS = [code for code in catalogues() if code != "en"]

# The modules whose errors appear on pages and in answers of the API.
COMMON = ROOT / "libs" / "common" / "src" / "waybill"
SPEAKERS = [
    *(ROOT / "services" / "api" / "src").rglob("*.py"),
    *(
        path
        for pages in PAGES
        for path in pages.parent.rglob("*.py")
        if not {"commands", "migrations"} & set(path.parts)
    ),
    *(path for folder in ("web", "http", "retention") for path in (COMMON / folder).rglob("*.py")),
    *(COMMON / "storage" / name for name in ("failures.py", "space.py", "local.py")),
    *(COMMON / name for name in ("errors.py", "failures.py", "security/keys.py")),
]
GATEWAY = list((ROOT / "services" / "gateway" / "src").rglob("*.py"))
# These errors are for operators at the command line and for programmers who enqueue jobs.
NOT_FOR_READERS = re.compile(
    r"tenant's name|A key (needs|expires)|A key's name|There is no (key|permission)|(This|Another|no) API key"
    r"|payload is wrong|Nothing is stored under|A tenant must have|days\.$|threshold"
)


class Use(NamedTuple):
    where: str
    key: str
    params: frozenset[str] | None
    """None if the call does not name its parameters."""


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _calls(paths: list[Path]) -> Iterator[tuple[Path, ast.Call]]:
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                yield path, node


def _uses() -> list[Use]:
    """Every message that Python code makes with `msg("...")` or `say("...")`."""
    found = []
    for path, call in _calls([path for path in SOURCES if "waybill_cli" not in path.parts]):  # it has another `say`
        if _name(call) in ("msg", "say") and call.args and isinstance(call.args[0], ast.Constant):
            names = [keyword.arg for keyword in call.keywords]
            params = None if None in names else frozenset(str(name) for name in names)
            found.append(Use(f"{path.relative_to(ROOT)}:{call.lineno}", str(call.args[0].value), params))
    return found


def _pages_text() -> str:
    paths = [
        path for folder in (WEB, *PAGES) for name in ("templates", "static") for path in (folder / name).glob("*.*")
    ]
    return "\n".join(path.read_text() for path in [*SOURCES, *paths] if "waybill_documents" not in path.parts)


@pytest.mark.parametrize("code", OTHERS)
def test_languages_say_the_same_things(code: str) -> None:
    english, other = catalogues()["en"], catalogues()[code]
    assert other.keys() == english.keys()
    for key, template in other.items():
        assert template.holes == english[key].holes, key
        assert {hole[1] for hole in HOLE.finditer(template.one or "")} <= template.holes, key
    for key in ("dates.months", "dates.short_months"):
        assert len(other[key].other.split()) == 12


def test_every_message_made_in_code_is_in_the_catalogue_with_these_parameters() -> None:
    uses = _uses()
    assert len(uses) > 150
    unknown = [use for use in uses if use.key not in ENGLISH.messages]
    assert unknown == []
    other = [use for use in uses if use.params is not None and use.params != ENGLISH.messages[use.key].holes]
    assert [use for use in other if "count" not in (use.params or ())] == []


def test_every_message_said_on_a_page_is_in_the_catalogue() -> None:
    said = set(re.findall(r"""\bt\(\s*"([a-z_.]+\.\w+)\"""", _pages_text()))
    assert len(said) > 100
    assert said - ENGLISH.messages.keys() == set()


def test_every_message_in_the_catalogue_is_said_somewhere() -> None:
    text = _pages_text()
    named = set(re.findall(r'"([a-z_]+(?:\.[a-z_0-9]+)+)"', text))
    # Some keys are composed in code, from a status, a code or a mapping.
    begun = tuple(re.findall(r"""\bf"([a-z_]+\.[\w.]*)\{""", text))
    assert [key for key in ENGLISH.messages if key not in named and not key.startswith(begun)] == []


def _imported(script: Path) -> list[Path]:
    """A script, and those of its own folder that it imports."""
    found = [script]
    for each in found:
        for name in re.findall(r'from "\./([\w.]+)"', each.read_text()):
            if (other := script.with_name(name)) not in found:
                found.append(other)
    return found


def _scripted(pages: Path) -> Iterator[tuple[str, str, list[Path]]]:
    """The templates of a pipeline that load scripts of its own, with what they pass to them."""
    for template in sorted((pages / "templates").glob("*.html")):
        text = template.read_text()
        scripts = re.findall(r'<script type="module" src="\{\{ page\.static \}\}/\w+/(\w+\.js)"', text)
        if scripts:
            given = re.search(r"words\(([^)]*)\)", text)
            assert given is not None, template
            yield template.name, given[1], [path for name in scripts for path in _imported(pages / "static" / name)]


def test_scripts_are_given_what_they_say() -> None:
    everywhere = [(WEB / "static" / name).read_text() for name in ("everywhere.js", "words.js")]
    seen = []
    for pages in PAGES:
        for template, given, scripts in _scripted(pages):
            seen.append(template)
            words = json.loads(for_scripts(INDONESIAN, *re.findall(r'"([\w.]+)"', given)))
            text = "\n".join(path.read_text() for path in scripts)
            wanted = set(re.findall(r'\bt\("([\w.]+)"', text))
            wanted |= {key for each in everywhere for key in re.findall(r'\bt\("((?!sizes)[\w.]+)"', each)}
            if re.search(r"import \{[^}]*\bsize\b", text):
                wanted |= {key for key in ENGLISH.messages if key.startswith("sizes.")}
            if re.search(r"import \{[^}]*\bexplain\b", text):  # every error that a request of this page can get
                others = {each.parent.name.removeprefix("waybill_") for each in PAGES if each != pages}
                wanted |= {use.key for use in _raised() if use.key.partition(".")[0] not in others}
            assert wanted - words["messages"].keys() == set(), f"{pages.parent.name}: {template}"
    assert {"upload.html", "queue.html", "review.html", "list.html", "batch.html", "summary.html"} <= set(seen)


def _raised() -> list[Use]:
    given = [value for _, call in _calls(SPEAKERS) if _name(call) in _error_names() for value in call.args]
    made = [value for value in given if isinstance(value, ast.Call) and _name(value) == "msg"]
    return [Use("", str(call.args[0].value), None) for call in made if isinstance(call.args[0], ast.Constant)]


def _error_names() -> set[str]:
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    return kinds | {"BadForm", "TooSlow", "Problem", "Pause", "Refusal", "bad_form", "not_acceptable", "saturated"}


def test_whatever_a_reader_may_meet_has_a_key() -> None:
    plain = []
    for path, call in _calls([*SPEAKERS, *GATEWAY]):
        for value in call.args if _name(call) in _error_names() else []:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                plain.append(f"{path.name}: {value.value}")
            elif isinstance(value, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "…" for part in value.values)
                plain.append(f"{path.name}: {''.join(map(str, parts))}")
    assert [each for each in plain if not NOT_FOR_READERS.search(each)] == []
    assert len(_raised()) > 60


def test_the_document_library_and_the_platform_use_different_keys() -> None:
    """A problem document names a key, and not whose it is."""
    assert sentences.entries("en").keys() & ENGLISH.messages.keys() == set()


def test_progress_is_told_by_keys() -> None:
    handlers = [path for path in SOURCES if path.name == "handlers.py" and "pipelines" in path.parts]
    told = [call.args[1] for _, call in _calls(handlers) if _name(call) == "progress" and len(call.args) > 1]
    assert told
    assert [value for value in told if not isinstance(value, ast.Constant) or value.value not in ENGLISH.messages] == []


def test_every_code_has_its_sentence() -> None:
    assert {key.removeprefix("errors.") for key in ENGLISH.messages if key.startswith("errors.")} == set(Code)
    assert all(ENGLISH.say(f"errors.{code}").endswith(".") for code in Code)


def test_no_script_is_ended_by_a_word() -> None:
    tables = {key.rpartition(".")[0] for key in INDONESIAN.messages}
    assert "<" not in for_scripts(INDONESIAN, *sorted(tables))


def test_every_mapping_we_ship_has_its_title_in_every_language() -> None:
    titles = {name: found.title for name in catalogue.names() if (found := catalogue.summary(name)) is not None}
    table = "convert.titles."
    known = {key.removeprefix(table): ENGLISH.say(key) for key in ENGLISH.messages if key.startswith(table)}
    assert known == titles


@pytest.mark.parametrize("pipeline", installed(), ids=lambda pipeline: pipeline.name)
def test_a_pipelines_keys_begin_with_its_name(pipeline: Pipeline) -> None:
    """So no pipeline can take a name that another one wants to use."""
    paths = list(Path(str(files(pipeline.pages))).glob("languages/*.toml")) if pipeline.pages else []
    assert [key for path in paths for key in read(path) if not key.startswith(f"{pipeline.name}.")] == []

"""The catalogues are complete: every language says the same things, and knows whatever a page may hear."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path

import pytest

from pages.test_pages import PAGES, WEB
from waybill import errors
from waybill.errors import MEANINGS, Code
from waybill.web.languages import ENGLISH, LANGUAGES, Language, for_scripts
from waybill.web.languages.catalogue import HOLE
from waybill.web.languages.sentences import TABLES
from waybill_documents import catalogue

ROOT = Path(__file__).parents[2]
INDONESIAN = LANGUAGES["id"]
OTHERS = [language for language in LANGUAGES.values() if language is not ENGLISH]

# Where sentences are made that a person can meet on a page.
SPEAKERS = [
    *(ROOT / "services" / "api" / "src").rglob("*.py"),
    *(ROOT / "libs" / "common" / "src" / "waybill" / "web").rglob("*.py"),
    *PAGES.parent.glob("*.py"),
    *(ROOT / "libs" / "common" / "src" / "waybill" / "http").rglob("*.py"),
    *(ROOT / "libs" / "common" / "src" / "waybill" / "storage" / name for name in ("failures.py", "space.py")),
    *(ROOT / "libs" / "common" / "src" / "waybill" / name for name in ("errors.py", "security/keys.py")),
]
# For operators, and for programs that get what no page sends.
NOT_FOR_READERS = re.compile(r"tenant's name|A key (needs|expires)|A key's name|There is no key|payload is wrong")


@pytest.mark.parametrize("language", OTHERS, ids=lambda language: language.code)
def test_languages_say_the_same_things(language: Language) -> None:
    assert language.messages.keys() == ENGLISH.messages.keys()
    for key, message in language.messages.items():
        assert message.holes == ENGLISH.messages[key].holes, key
        assert set(HOLE.findall(message.one or "")) <= message.holes, key
    for key in ("dates.months", "dates.short_months"):
        assert len(language.say(key).split()) == 12


def test_every_message_is_said_somewhere_and_every_message_said_exists() -> None:
    sources = [
        *(ROOT / "services" / "api" / "src").rglob("*.py"),
        *(
            path
            for folder in (WEB, PAGES)
            for pattern in ("*.py", "languages/*.py", "templates/*", "static/*.js")
            for path in folder.glob(pattern)
        ),
    ]
    text = "\n".join(path.read_text() for path in sources)
    said = set(re.findall(r"""(?:\bt|\bsay)\(\s*"([a-z_]+\.\w+)\"""", text))
    named = set(re.findall(r'"([a-z_]+\.[a-z_0-9]+)"', text)) & ENGLISH.messages.keys()
    # Chosen by what they are about: a status, a state, a code.
    begun = tuple(re.findall(r"""say\([^)\n]*f"([a-z_]+\.\w*)\{""", text)) + tuple(
        re.findall(r'key = f"([a-z_]+\.\w*)\{', text)
    )
    assert said - ENGLISH.messages.keys() == set()
    unsaid = {key for key in ENGLISH.messages if key not in said | named and not key.startswith(begun + TABLES)}
    assert unsaid == set()


def test_scripts_are_given_what_they_say() -> None:
    tables = {"upload.html": "upload.js", "queue.html": "queue.js"}
    everywhere = [(WEB / "static" / name).read_text() for name in ("everywhere.js", "words.js")]
    for template, script in tables.items():
        given = re.search(r"words\(([^)]*)\)", (PAGES / "templates" / template).read_text())
        assert given is not None
        words = json.loads(for_scripts(INDONESIAN, *re.findall(r'"(\w+)"', given[1])))
        text = (PAGES / "static" / script).read_text()
        wanted = set(re.findall(r'\bt\("([\w.]+)"', text))
        wanted |= {key for each in everywhere for key in re.findall(r'\bt\("((?!sizes)[\w.]+)"', each)}
        if re.search(r"import \{[^}]*\bsize\b", text):
            wanted |= {key for key in ENGLISH.messages if key.startswith("sizes.")}
        assert wanted - words["messages"].keys() == set(), script


def test_no_script_is_ended_by_a_word() -> None:
    assert "<" not in for_scripts(INDONESIAN, "sending", "watching", "errors", "states")
    assert json.loads(for_scripts(ENGLISH, "errors"))["known"] == {}, "English needs no translating"


def test_errors_mean_in_english_what_the_taxonomy_says() -> None:
    assert {code: ENGLISH.say(f"errors.{code}") for code in Code} == {
        code: meaning.sentence for code, meaning in MEANINGS.items()
    }


def _spoken(path: Path) -> list[str]:
    """The sentences that a module says, with something in the place of what is filled in."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    speakers = kinds | {"BadForm", "TooSlow", "Problem", "Hold", "progress"}
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for value in node.args if name in speakers else []:
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.append(value.value)
            elif isinstance(value, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "x" for part in value.values)
                found.append("".join(map(str, parts)))
    return found


def test_everything_a_page_may_hear_is_known_in_every_language() -> None:
    heard = [sentence for path in SPEAKERS for sentence in _spoken(path)]
    assert len(heard) > 60
    unknown = [each for each in heard if not NOT_FOR_READERS.search(each) and INDONESIAN.translate(each) is None]
    assert unknown == []


def test_every_mapping_we_ship_has_its_title_in_every_language() -> None:
    titles = {name: found.title for name in catalogue.names() if (found := catalogue.summary(name)) is not None}
    known = {key.removeprefix("titles."): ENGLISH.say(key) for key in ENGLISH.messages if key.startswith("titles.")}
    assert known == titles


def test_sentences_keep_what_is_filled_in() -> None:
    assert INDONESIAN.explain("TOO_LARGE", "This file is larger than 50 MB. Please upload a smaller one.") == (
        "Berkas ini lebih besar dari 50 MB. Silakan unggah yang lebih kecil."
    )
    late = INDONESIAN.translate("Only what waits or runs can be cancelled; this is complete.")
    assert late is not None
    assert late.endswith("status dokumen ini: Siap.")
    assert INDONESIAN.explain("NOT_FOUND", "Nobody ever said this.") == INDONESIAN.say("errors.NOT_FOUND")
    assert INDONESIAN.explain("NEW_CODE", "") == INDONESIAN.say("errors.UNKNOWN")
    assert ENGLISH.explain("NOT_FOUND", "Nobody ever said this.") == "Nobody ever said this."
    assert INDONESIAN.translate("This file is larger than " * 50_000) is None

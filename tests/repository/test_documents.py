"""Checks what a machine can check in the documents: links, names of tests and files, generated pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from waybill.config.reference import example, reference

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_every_test_the_guarantees_name_exists() -> None:
    promising = [ROOT / "docs" / name for name in ("guarantees.md", "janitor.md", "schedules.md")]
    named = {name for page in promising for name in re.findall(r"`(test_\w+)`", page.read_text())}
    existing = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text(), re.MULTILINE)
    }
    assert len(named) > 20
    assert named - existing == set()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_files_the_architecture_names_exist() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = re.findall(r"`(\w+/[\w/]+\.py|\w+\.py)`", text)
    packages = [*ROOT.glob("libs/*/src"), *ROOT.glob("pipelines/*/src"), *ROOT.glob("services/*/src")]
    folders = [*packages, ROOT / "libs/documents/src/waybill_documents", ROOT / "libs/passport/src/waybill_passport"]
    assert len(named) > 60
    assert [name for name in named if not any((folder / name).exists() for folder in folders)] == []


def test_the_configuration_reference_and_the_example_of_an_env_file_are_current() -> None:
    assert (ROOT / "docs/configuration.md").read_text() == reference()
    assert (ROOT / ".env.example").read_text() == example()

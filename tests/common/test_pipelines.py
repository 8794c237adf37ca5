"""Pipelines are found by their entry points, and one that is broken stops a process with a sentence."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

BROKEN = "The pipeline 'extra' (waybill_extra:PIPELINE) cannot be loaded:"
LIST = "from waybill.pipelines import installed; print(*(one.name for one in installed()))"


def install(folder: Path, name: str, pipeline: str) -> None:
    """What `pip install` leaves of a package with one pipeline."""
    package = folder / f"waybill_{name}"
    (package / "pages" / "languages").mkdir(parents=True)
    (package / "__init__.py").write_text(pipeline)
    (package / "pages" / "__init__.py").touch()
    for language, greeting in (("en", "Hello"), ("id", "Halo")):
        (package / "pages" / "languages" / f"{language}.toml").write_text(f'[{name}]\ngreeting = "{greeting}"\n')
    facts = folder / f"waybill_{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: waybill-{name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[waybill.pipelines]\n{name} = waybill_{name}:PIPELINE\n")


def run(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)


def pipeline(name: str, more: str = "") -> str:
    return f"from waybill.pipelines import Pipeline\nPIPELINE = Pipeline(name={name!r}{more})\n"


def test_pipelines_are_found_by_their_entry_points(tmp_path: Path) -> None:
    install(tmp_path, "extra", pipeline("extra"))
    assert run(tmp_path, LIST).stdout.split() == ["batches", "convert", "extra"]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (
            "import no_such_module",
            "The pipeline 'extra' (waybill_extra:PIPELINE) cannot be loaded: ModuleNotFoundError",
        ),
        ("", "The pipeline 'extra' (waybill_extra:PIPELINE) cannot be loaded: AttributeError"),
        (pipeline("convert"), "Two installed pipelines are called 'convert'"),
    ],
)
def test_a_broken_pipeline_ends_the_process_with_a_sentence(tmp_path: Path, code: str, sentence: str) -> None:
    install(tmp_path, "extra", code)
    ran = run(tmp_path, LIST)
    assert ran.returncode == 2
    assert ran.stderr.startswith(sentence)
    assert "Traceback" not in ran.stderr


def test_a_pipeline_with_messages_and_no_templates_breaks_no_page(tmp_path: Path) -> None:
    install(tmp_path, "extra", pipeline("extra", ", pages='waybill_extra.pages'"))
    page = """
from waybill.messages import languages, msg
from waybill.web.layout import Frame, render
shown = {"status": 404, "code": "NOT_FOUND", "headline": "Nothing here", "detail": str(msg("extra.greeting"))}
print(render("problem.html", languages()["en"], page=Frame("/x", None, "", "/"), problem=shown))
"""
    ran = run(tmp_path, page)
    assert ran.returncode == 0, ran.stderr
    assert "<p>Hello</p>" in ran.stdout


def test_services_start_without_alembic_and_workers_without_a_web_framework(tmp_path: Path) -> None:
    code = """
import sys, waybill_worker.__main__
from waybill.db.schema import revisions
revisions()
print(sorted({"alembic", "fastapi", "jinja2", "typer"} & sys.modules.keys()))
"""
    assert run(tmp_path, code).stdout.strip() == "[]"

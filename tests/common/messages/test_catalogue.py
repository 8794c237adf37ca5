"""Catalogues: the platform's words, and those that each installed pipeline adds."""

from __future__ import annotations

from pathlib import Path

import pytest

from waybill.messages import catalogue
from waybill.messages.catalogue import Template, catalogues, read
from waybill.pipelines import Pipeline


def test_tables_may_be_nested(tmp_path: Path) -> None:
    file = tmp_path / "en.toml"
    file.write_text('[a]\nb = "B {x}"\n[a.c]\nd = { one = "1", other = "{count}" }\n', "utf-8")
    assert read(file) == {"a.b": Template("B {x}"), "a.c.d": Template("{count}", "1")}
    assert read(file)["a.b"].holes == {"x"}


def _install(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str, text: str) -> None:
    """A pipeline whose pages cannot be imported, as in a process without a web framework."""
    pages = folder / name / "pages"
    (pages / "languages").mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (pages / "__init__.py").write_text("raise ImportError('no web framework here')")
    (pages / "languages" / "en.toml").write_text(text, "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(catalogue, "installed", lambda: (Pipeline(name=name, pages=f"{name}.pages"), Pipeline("bare")))


def test_a_pipeline_adds_its_own_words_and_its_pages_are_not_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    _install(monkeypatch, tmp_path, "stamps", '[stamps]\nlost = "The stamp is lost."\n')
    found = catalogues.__wrapped__()
    assert found["en"]["stamps.lost"].other == "The stamp is lost."
    assert "stamps.lost" not in found["id"], "it speaks English only, and so do its messages"
    assert "errors.UNKNOWN" in found["id"]


def test_a_pipeline_cannot_replace_the_words_of_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    _install(monkeypatch, tmp_path, "thief", '[errors]\nUNKNOWN = "Mine."\n')
    with pytest.raises(ValueError, match=r"thief: en\.toml repeats errors\.UNKNOWN"):
        catalogues.__wrapped__()

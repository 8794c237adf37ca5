"""A folder as a ZIP: all that is in it, and the same bytes each time."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from waybill.errors import Refused
from waybill_batches.commands.folder_zip import zip_folder


def test_the_same_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        (folder / "b").mkdir(parents=True)
        (folder / "b" / "ä.txt").write_text("deep")
        (folder / "a.txt").write_text("flat")
        assert zip_folder(folder, tmp_path / f"{name}.zip") == 2
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    assert zipfile.ZipFile(tmp_path / "one.zip").namelist() == ["a.txt", "b/ä.txt"]


def test_links_and_hidden_files_are_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "papers"
    folder.mkdir()
    (tmp_path / "secret").write_text("not yours")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    (folder / "note.txt").write_text("here")
    zip_folder(folder, tmp_path / "papers.zip")
    assert zipfile.ZipFile(tmp_path / "papers.zip").namelist() == ["note.txt"]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(Refused, match="There are no files in"):
        zip_folder(tmp_path / "empty", tmp_path / "empty.zip")

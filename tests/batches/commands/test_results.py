"""Fetching results into a folder: nothing is written outside it, whatever a server sends."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from waybill.console.api_client import ApiFailed
from waybill_batches.commands import results

HERE = {"id": "01a1f60b-a340-71f3-b954-3c13fe2c5d4f"}


class Server:
    """What the API's client does with one prepared answer."""

    def __init__(self, *names: str) -> None:
        self._archive = io.BytesIO()
        with zipfile.ZipFile(self._archive, "w") as archive:
            for name in names:
                archive.writestr(name, name)

    def save(self, path: str, target: Path) -> None:
        target.write_bytes(self._archive.getvalue())


def test_results_are_unpacked_in_their_folders(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert results.fetch(Server("a/b.json", "SUMMARY.json"), HERE, out) == out  # type: ignore[arg-type]
    assert sorted(path.relative_to(out).as_posix() for path in out.rglob("*")) == ["SUMMARY.json", "a", "a/b.json"]


@pytest.mark.parametrize("name", ["../evil.json", "/etc/evil.json", "a/../../evil.json", "C:\\evil.json"])
def test_a_path_that_leads_out_is_refused(tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(ApiFailed):
        results.fetch(Server(name), HERE, out)  # type: ignore[arg-type]
    assert not list(tmp_path.rglob("evil*"))


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "elsewhere").mkdir()
    out.mkdir()
    (out / "a").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ApiFailed, match="leads out of"):
        results.fetch(Server("a/b.json"), HERE, out)  # type: ignore[arg-type]
    assert not list((tmp_path / "elsewhere").iterdir())

"""A clean environment, and ways to set variables and to see a configuration refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from waybill.config import CommonSettings, load
from waybill.config.registry import all_settings
from waybill.config.sources import bare_names
from waybill_engine.settings import WorkerSettings

URL = "postgresql://waybill:hunter2@db:5432/waybill"


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Neither the settings nor the `.env` of whoever runs the tests."""
    fields = [field for settings in all_settings() for field in settings.model_fields.values()]
    bare = {each.name for field in fields for each in bare_names(field)}
    for name in list(os.environ):
        if name.startswith(("WAYBILL_", "BPC_")) or name in bare:
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def given(monkeypatch: pytest.MonkeyPatch, **variables: str) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)


def refused(capsys: pytest.CaptureFixture[str], settings: type[CommonSettings] = WorkerSettings) -> list[str]:
    """The lines printed for a configuration that must be refused."""
    with pytest.raises(SystemExit) as stopped:
        load(settings)
    assert stopped.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()

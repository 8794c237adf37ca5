"""The documents made from the settings classes are complete and current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from waybill.config import load
from waybill.config.reference import example, reference
from waybill.config.registry import all_settings
from waybill.config.sources import variable
from waybill_cli.config import app
from waybill_convert.settings import ConvertSettings
from waybill_engine.settings import WorkerSettings


def test_every_setting_is_documented_where_it_is_declared() -> None:
    for settings in all_settings():
        for name, field in settings.model_fields.items():
            assert field.description, f"{settings.__name__}.{name} says nothing about itself"
            assert f"`{variable(name)}`" in reference()


def test_the_reference_holds_nothing_of_the_machine_it_was_written_on() -> None:
    assert str(Path.home()) not in reference()
    assert "number of CPUs" in reference()


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, arguments)


@pytest.mark.parametrize("document", ["reference", "example"])
def test_the_command_writes_a_document_and_notices_when_it_is_old(document: str, tmp_path: Path) -> None:
    file = tmp_path / "docs" / "written"
    assert invoke(document, "--check", str(file)).exit_code == 1
    assert invoke(document, "--write", str(file)).exit_code == 0
    assert invoke(document, "--check", str(file)).exit_code == 0
    assert invoke(document).stdout == file.read_text(encoding="utf-8")
    file.write_text(file.read_text(encoding="utf-8").replace("8080", "8081"), encoding="utf-8")
    old = invoke(document, "--check", str(file))
    assert old.exit_code == 1
    assert f"waybill config {document} --write" in old.stderr


def test_the_example_has_every_variable_once_commented_out_with_its_default() -> None:
    fields = {variable(name) for settings in all_settings() for name in settings.model_fields}
    lines = example().splitlines()
    assert all(line.startswith("#") for line in lines if line)
    named = [match[1] for line in lines if (match := re.match(r"#(WAYBILL_\w+)=", line))]
    assert sorted(named) == sorted(fields)
    assert "#WAYBILL_API_PORT=8080" in lines
    assert "#WAYBILL_DATABASE_URL=postgresql://waybill:secret@localhost:5432/waybill" in lines


def test_the_example_uncommented_is_a_valid_configuration(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(re.sub(r"^#(?=WAYBILL_)", "", example(), flags=re.MULTILINE))
    assert load(WorkerSettings) == WorkerSettings(database_url=WorkerSettings().database_url, _env_file=None)
    assert load(ConvertSettings) == ConvertSettings(_env_file=None)


def test_a_name_with_a_unit_of_its_own_says_so() -> None:
    assert "`POLL_INTERVAL` (in milliseconds)" in reference()
    assert "`LEASE_TTL_MINUTES` (in minutes)" in reference()
    assert "`BPC_DB_HOST` (with `BPC_DB_PORT`," in reference()

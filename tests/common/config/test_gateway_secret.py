"""The gateway's secret comes from a variable, from a file, or from the file that `waybill up` makes."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from waybill.config.gateway_secret import FILE_NAME, GatewaySecretSettings

ONE, TWO = "1" * 32, "2" * 32


def test_a_variable_a_file_and_the_file_in_the_home_folder(tmp_path: Path) -> None:
    assert GatewaySecretSettings(home=tmp_path).gateway_secrets == ()
    (tmp_path / FILE_NAME).write_text(f"{ONE}\n")
    assert GatewaySecretSettings(home=tmp_path).gateway_secrets == (ONE.encode(),)
    named = tmp_path / "named"
    named.write_text(f"{TWO}, {ONE}")
    found = GatewaySecretSettings(home=tmp_path, gateway_secret_file=named)
    assert found.gateway_secrets == (TWO.encode(), ONE.encode())
    told = GatewaySecretSettings(home=tmp_path, gateway_secret_file=named, gateway_secret=TWO)
    assert told.gateway_secrets == (TWO.encode(),)
    assert TWO not in repr(told)


def test_a_secret_that_is_short_or_cannot_be_read_is_refused_without_being_shown(tmp_path: Path) -> None:
    for wrong in ("short", f"{ONE},short", ","):
        with pytest.raises(ValidationError, match="at least 32 characters") as refused:
            GatewaySecretSettings(home=tmp_path, gateway_secret=wrong)
        assert "short" not in str(refused.value)
    with pytest.raises(ValidationError, match="cannot be read"):
        GatewaySecretSettings(home=tmp_path, gateway_secret_file=tmp_path / "missing")

"""What the keeper of the embedded Postgres says about the disk. That it starts Postgres again is in `test_up`."""

from __future__ import annotations

import io
import shutil
from pathlib import Path

from waybill_cli.local.database_keeper import DiskWatch
from waybill_cli.local.screen import Screen


def test_a_disk_that_gets_full_is_reported_once_and_its_recovery_too(tmp_path: Path) -> None:
    said = io.StringIO()
    free = shutil.disk_usage(tmp_path).free
    watch = DiskWatch(tmp_path, Screen((), said), min_free=2 * free)
    watch.look()
    watch.look()
    assert said.getvalue().count("free on the disk of the database") == 1
    assert str(tmp_path) in said.getvalue()
    watch._min_free = 0  # somebody made space
    watch.look()
    watch.look()
    assert said.getvalue().count("MB free again") == 1


def test_a_folder_that_is_gone_is_no_fault_of_the_disk(tmp_path: Path) -> None:
    said = io.StringIO()
    DiskWatch(tmp_path / "gone", Screen((), said), min_free=2**60).look()
    assert said.getvalue() == ""

"""The chapters with whole programs are true: what they show is copied from the page and runs."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path
from typing import Any

from waybill.db import Database
from waybill.storage import LocalStorage
from waybill_engine import NewJob, State
from waybill_engine.testing import run_inline

PAGE = Path(__file__).parents[3] / "docs" / "handlers.md"


def blocks(chapter: str) -> list[str]:
    (text,) = re.findall(rf"^## {chapter}\n(.*?)(?=^## )", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


async def test_the_tests_of_the_handbook_pass(empty_database_url: str, tmp_path: Path) -> None:
    (tmp_path / "reports.py").write_text("\n".join([*blocks("1. Declare the kind"), *blocks("2. Write the handler")]))
    for block in blocks("Testing a handler"):
        name = re.match(r"# (\w+\.py)", block)
        assert name is not None, "every block of the chapter says which file it is"
        (tmp_path / name[1]).write_text(block)
    settings = ("asyncio_mode=auto", "asyncio_default_fixture_loop_scope=function")
    process = await asyncio.create_subprocess_exec(
        # A reader of the page has pytest-asyncio; loading this repository's other plugins takes longer than the tests.
        *(sys.executable, "-m", "pytest", "-q", "-p", "pytest_asyncio.plugin", "-p", "no:cacheprovider", "-W", "error"),
        *(word for setting in settings for word in ("-o", setting)),
        cwd=tmp_path,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(tmp_path),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TEST_DATABASE_URL": empty_database_url,
        },
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert f"{len(re.findall('async def test_', (tmp_path / 'test_reports.py').read_text()))} passed" in said.decode()


async def test_the_handler_with_rows_of_its_own_runs(db: Database, database_url: str, tmp_path: Path) -> None:
    totals, program = blocks("Rows of your own")
    module: dict[str, Any] = {"__name__": "totals"}
    exec(totals, module)  # noqa: S102 - our own page
    await module["make_tables"](db)
    for numbers in ([1, 2], [3, 4]):
        outcome = await run_inline(
            db, LocalStorage(tmp_path), NewJob(module["NOTE_TOTAL"], "acme", {"numbers": numbers})
        )
        assert (outcome.state, outcome.message) == (State.SUCCEEDED, None)
    async with db.hot() as connection:
        assert [row["total"] for row in await connection.fetch("SELECT total FROM report_totals")] == [7]
    (tmp_path / "program.py").write_text(f"{program}\n\nimport asyncio\nasyncio.run(main())\n")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "program.py",
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "WAYBILL_DATABASE_URL": database_url},
    )
    assert await process.wait() == 0

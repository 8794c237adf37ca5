"""The chapter "Testing a handler" is true: its tests, copied from the page, pass in a project of their own."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from pathlib import Path

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
        *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"),
        *(word for setting in settings for word in ("-o", setting)),
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path), "TEST_DATABASE_URL": empty_database_url},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, said.decode()
    assert f"{len(re.findall('async def test_', (tmp_path / 'test_reports.py').read_text()))} passed" in said.decode()

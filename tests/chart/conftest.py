"""Every installation is rendered once and looked at by many tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.chart import MATRIX, Installation, Render, Rendered, with_registry
from support.helm import NO_HELM, Helm, find_helm


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    program = find_helm()
    if program is None:
        pytest.skip(NO_HELM)
    return Helm(program, tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def installation(helm: Helm) -> Installation:
    """One of the installations, by its name."""
    known: dict[str, Rendered] = {}

    def look_up(name: str) -> Rendered:
        if name not in known:
            known[name] = Rendered(helm.render(with_registry(MATRIX[name])))
        return known[name]

    return look_up


@pytest.fixture(scope="session")
def render(helm: Helm) -> Render:
    """Any other one. The registry is added."""

    def rendered(values: dict[str, Any] | None = None, **options: Any) -> Rendered:
        return Rendered(helm.render(with_registry(values or {}), **options))

    return rendered


@pytest.fixture(scope="session")
def chart(pytestconfig: pytest.Config) -> Path:
    return pytestconfig.rootpath / "charts" / "waybill"

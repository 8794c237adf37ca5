"""Builds the images with Docker or, where there is none, with buildah: `make images`, docs/images.md.

This machine's pip configuration (a mirror, a certificate) is handed to the build as a secret: it is there while pip
runs, and in no layer. Nothing but the standard library is needed.
"""

from __future__ import annotations

import argparse
import ast
import configparser
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_CA = "/run/secrets/ca.crt"
# Settings of pip that say how to reach packages. Others are about this machine's environments.
_PIP_SETTINGS = {
    "index-url",
    "extra-index-url",
    "find-links",
    "trusted-host",
    "proxy",
    "timeout",
    "retries",
    "cert",
    "client-cert",
    "no-index",
}
_PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")


@dataclass(frozen=True, slots=True)
class Family:
    """A Dockerfile whose last stages are images, and how those are called."""

    dockerfile: Path
    prefix: str

    def targets(self) -> list[str]:
        """The targets that are images: those with a title."""
        text = self.dockerfile.read_text(encoding="utf-8")
        return re.findall(rf'image\.title="{self.prefix}-([a-z0-9-]+)"', text)


FAMILIES = {
    "services": Family(HERE / "Dockerfile", "waybill"),
    "dev": Family(HERE / "dev" / "Dockerfile", "waybill-dev"),
    "jaeger": Family(HERE / "dev" / "jaeger.Dockerfile", "waybill-dev"),
}


def main() -> int:
    arguments = _arguments()
    family = FAMILIES[arguments.family]
    targets = arguments.targets.split() or family.targets()
    if unknown := set(targets) - set(family.targets()):
        return _refuse(f"There is no image {', '.join(sorted(unknown))}; there are {', '.join(family.targets())}.")
    if arguments.program and not Path(arguments.program).is_file():
        return _refuse(f"There is no program {arguments.program}. JAEGER_BIN names Jaeger's.")
    try:
        builder = _builder(arguments.builder)
    except LookupError as error:
        return _refuse(str(error.args[0]))
    built: list[str] = []
    with _secrets() as secrets, _context(arguments) as context:
        for target in targets:
            name = f"{arguments.registry.rstrip('/')}/{family.prefix}-{target}:{arguments.tag}"
            sys.stdout.write(f"building {name}\n")
            sys.stdout.flush()
            command = [*_build(builder), *secrets, *_arguments_of_the_build(arguments), "--target", target]
            done = subprocess.run(
                [*command, "--tag", name, "--file", str(family.dockerfile), str(context)], cwd=ROOT, check=False
            )
            if done.returncode != 0:
                return _refuse(f"{name} could not be built: see above.")
            built.append(name)
    if arguments.save:
        _save(builder, built, Path(arguments.save))
    _show_sizes(builder, built)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Builds the images.")
    parser.add_argument("family", choices=FAMILIES)
    parser.add_argument("--targets", default="", help="which ones, separated by spaces; all by default")
    parser.add_argument("--registry", default="localhost", help="what stands before the name")
    parser.add_argument("--tag", default=_version(), help="what stands after it; the version by default")
    parser.add_argument("--base", default="", help="the base image; that of the Dockerfile by default")
    parser.add_argument("--source", default="unknown", help="where the code is, for the label")
    parser.add_argument("--builder", default="", help="docker or buildah, with its options; what is found by default")
    parser.add_argument("--program", default="", help="what the image of Jaeger is made of")
    parser.add_argument("--save", default="", help="a folder that gets an archive of each image")
    return parser.parse_args()


@contextmanager
def _context(arguments: argparse.Namespace) -> Iterator[Path]:
    """The folder that a Dockerfile copies from: the repository or, for Jaeger, one with a program."""
    if not arguments.program:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="waybill-images-") as folder:
        program = Path(folder, arguments.family)
        shutil.copyfile(arguments.program, program)
        program.chmod(0o755)
        yield Path(folder)


def _refuse(sentence: str) -> int:
    sys.stderr.write(f"{sentence}\n")
    return 1


def _version() -> str:
    found = re.search(r'^version = "([^"]+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert found is not None  # noqa: S101 - our own file
    return found[1]


def _revision() -> str:
    """The commit that is checked out, with `-dirty` after it if files differ from it."""
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty"],  # noqa: S607 - whatever git there is
            cwd=ROOT,
            check=True,
            capture_output=True,
            text=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # a source archive
    return done.stdout.strip()


def _builder(wanted: str) -> list[str]:
    """The builder and its options, as the beginning of a command. Raises LookupError with a sentence."""
    if wanted:
        command = wanted.split()
        if Path(command[0]).name not in {"docker", "buildah"} or shutil.which(command[0]) is None:
            raise LookupError(f"BUILDER is docker or buildah, installed here, not {wanted!r}.")
        return command
    if shutil.which("docker") and _succeeds(["docker", "version"]):
        return ["docker"]
    if shutil.which("buildah"):
        return ["buildah"]
    raise LookupError("There is neither a running Docker nor buildah here. Install one (apt install buildah).")


def _succeeds(command: list[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _is_buildah(builder: list[str]) -> bool:
    return Path(builder[0]).name == "buildah"


def _build(builder: list[str]) -> list[str]:
    if not _is_buildah(builder):
        return [*builder, "build", "--quiet"]
    # Health checks exist only in Docker's format. As root we need no user namespace, and no program that makes one.
    isolation = ["--isolation", "chroot"] if os.geteuid() == 0 else []
    return [*builder, "bud", "--quiet", "--layers", "--format", "docker", *isolation]


def _arguments_of_the_build(arguments: argparse.Namespace) -> list[str]:
    given = {"VERSION": _version(), "REVISION": _revision(), "SOURCE": arguments.source}
    if arguments.base:
        given["BASE"] = arguments.base
    result = [f"--build-arg={name}={value}" for name, value in given.items()]
    # Only named: the builder takes the value from the environment, and keeps it out of the image's history.
    return result + [f"--build-arg={name}" for name in _PROXIES if os.environ.get(name)]


@contextmanager
def _secrets() -> Iterator[list[str]]:
    """Options that hand pip's configuration and certificates to the build, for as long as it takes."""
    settings = _pip_settings()
    certificates = settings.pop("cert", "") or os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("SSL_CERT_FILE")
    with tempfile.TemporaryDirectory(prefix="waybill-images-") as folder:
        options: list[str] = []
        if certificates and Path(certificates).is_file():
            settings["cert"] = _CA
            options += ["--secret", f"id=ca.crt,src={certificates}"]
        config = Path(folder, "pip.conf")
        parser = configparser.RawConfigParser()
        parser["global"] = settings
        with config.open("w", encoding="utf-8") as file:
            parser.write(file)
        yield [*options, "--secret", f"id=pip.conf,src={config}"]


def _pip_settings() -> dict[str, str]:
    """How this machine's pip reaches packages. The environment wins over files, as it does for pip."""
    done = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=False)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition("=")
        found[key.rpartition(".")[2]] = str(ast.literal_eval(value))
    variables = {name: value for name, value in os.environ.items() if name.startswith("PIP_") and value}
    found |= {name.removeprefix("PIP_").lower().replace("_", "-"): value for name, value in variables.items()}
    # A folder of wheels on this machine is not there in the build.
    links = [each for each in found.pop("find-links", "").split() if "://" in each]
    kept = {name: value for name, value in found.items() if name in _PIP_SETTINGS}
    return kept | ({"find-links": " ".join(links)} if links else {})


def _save(builder: list[str], names: list[str], folder: Path) -> None:
    """Write an archive of each image, as `kind load image-archive` and `ctr images import` read it."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        archive = folder / f"{name.rpartition('/')[2].partition(':')[0]}.tar"
        archive.unlink(missing_ok=True)
        if _is_buildah(builder):
            command = [*builder, "push", "--quiet", name, f"docker-archive:{archive}:{name}"]
        else:
            command = [*builder, "save", "--output", str(archive), name]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        sys.stdout.write(f"saved {archive}\n")


def _show_sizes(builder: list[str], names: list[str]) -> None:
    for name in names:
        listing = ["images"] if _is_buildah(builder) else ["image", "ls"]
        command = [*builder, *listing, "--format", "{{.Size}}", name]
        size = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        sys.stdout.write(f"{name:<50} {size:>9}\n")


if __name__ == "__main__":
    sys.exit(main())

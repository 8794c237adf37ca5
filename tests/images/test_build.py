"""`make images`: which builder it takes, what it hands over, and what it refuses.

The builder is somebody else's program, so a stand-in takes its place here, which notes how it was called and what the
secrets held. `make test-images` uses the real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "deploy/images/build.py"
IMAGES = ["api", "worker", "gateway", "janitor", "operator", "cli"]
CA = "-----BEGIN CERTIFICATE-----\n"

STAND_IN = """#!{python}
import json, os, sys
arguments = sys.argv[1:]
secrets = dict(each.removeprefix("id=").split(",src=") for each in arguments if each.startswith("id="))
held = {{name: open(path).read() for name, path in secrets.items()}}
with open({notes!r}, "a") as notes:
    notes.write(json.dumps([os.path.basename(sys.argv[0]), arguments, held, list(secrets.values())]) + "\\n")
print("123 MB")
sys.exit({code})
"""


@dataclass
class Call:
    program: str
    arguments: list[str]
    secrets: dict[str, str]
    paths: list[str]

    def build_arguments(self) -> dict[str, str]:
        given = [each.removeprefix("--build-arg=") for each in self.arguments if each.startswith("--build-arg=")]
        return {name: value for name, _, value in (each.partition("=") for each in given)}


class Machine:
    """A machine with only these builders. Each ends with its exit code, whatever it is asked."""

    def __init__(self, folder: Path, **builders: int) -> None:
        self._notes = folder / "notes"
        self._programs = folder / "programs"
        self._programs.mkdir(parents=True)
        for name, code in builders.items():
            program = self._programs / name
            text = STAND_IN.format(python=sys.executable, notes=str(self._notes), code=code)
            program.write_text(text, encoding="utf-8")
            program.chmod(0o755)

    def build(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        clean = {
            name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "SSL_", "REQUESTS_"))
        }
        return subprocess.run(
            [sys.executable, PROGRAM, *arguments],
            env={**clean, "PATH": str(self._programs), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def calls(self) -> list[Call]:
        return [Call(*json.loads(line)) for line in self._notes.read_text(encoding="utf-8").splitlines()]

    def builds(self) -> list[Call]:
        return [call for call in self.calls() if call.arguments[0] in {"build", "bud"}]


def after(arguments: list[str], option: str) -> str:
    return arguments[arguments.index(option) + 1]


def test_every_image_is_built_and_named_by_registry_and_tag(tmp_path: Path) -> None:
    machine = Machine(tmp_path, docker=0)
    done = machine.build("services", "--registry", "registry.test/team/", "--tag", "7")
    assert done.returncode == 0, done.stderr
    assert [after(call.arguments, "--target") for call in machine.builds()] == IMAGES
    named = [after(call.arguments, "--tag") for call in machine.builds()]
    assert named == [f"registry.test/team/waybill-{name}:7" for name in IMAGES]
    for name in named:
        assert any(line.split() == [name, "123", "MB"] for line in done.stdout.splitlines())


def test_docker_is_taken_if_it_runs_and_buildah_otherwise(tmp_path: Path) -> None:
    running = Machine(tmp_path / "running", docker=0, buildah=0)
    without_daemon = Machine(tmp_path / "without_daemon", docker=1, buildah=0)
    for machine, program in ((running, "docker"), (without_daemon, "buildah")):
        assert machine.build("services", "--targets", "api").returncode == 0
        assert {call.program for call in machine.builds()} == {program}


def test_without_a_builder_it_says_what_to_install(tmp_path: Path) -> None:
    done = Machine(tmp_path).build("services")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "There is neither a running Docker nor buildah here. Install one (apt install buildah).\n"


def test_a_builder_may_be_chosen_with_its_options(tmp_path: Path) -> None:
    machine = Machine(tmp_path, docker=0, buildah=0)
    assert machine.build("services", "--targets", "cli", "--builder", "buildah --root /elsewhere").returncode == 0
    assert [call.program for call in machine.calls()] == ["buildah", "buildah"]
    assert all(call.arguments[:2] == ["--root", "/elsewhere"] for call in machine.calls())
    refused = machine.build("services", "--builder", "podman")
    assert (refused.returncode, refused.stderr) == (
        1,
        "BUILDER is docker or buildah, installed here, not 'podman'.\n",
    )


def test_an_image_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    done = Machine(tmp_path, docker=0).build("services", "--targets", "api scheduler")
    assert done.returncode == 1
    assert done.stderr == f"There is no image scheduler; there are {', '.join(IMAGES)}.\n"


def test_a_build_that_fails_ends_with_its_name(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=125)
    done = machine.build("services", "--tag", "1", "--builder", "buildah")
    assert done.returncode == 1
    assert done.stderr == "localhost/waybill-api:1 could not be built: see above.\n"
    assert len(machine.builds()) == 1


def test_the_base_and_the_version_are_arguments(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    machine.build("services", "--targets", "api", "--base", "localhost/base", "--source", "here", "--tag", "other")
    given = machine.builds()[0].build_arguments()
    assert given["BASE"] == "localhost/base"
    assert given["SOURCE"] == "here"
    assert given["VERSION"].startswith("0."), "the version of the code, whatever the tag is"
    machine.build("services", "--targets", "api")
    assert "BASE" not in machine.builds()[1].build_arguments(), "the Dockerfile has a default"


def test_buildah_keeps_health_checks_and_layers(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    machine.build("services", "--targets", "api")
    (call,) = machine.builds()
    assert after(call.arguments, "--format") == "docker"
    assert "--layers" in call.arguments


def test_the_pip_configuration_is_a_secret_that_is_gone_afterwards(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    authority = tmp_path / "ca.crt"
    authority.write_text(CA, encoding="utf-8")
    index = "https://somebody:password@mirror.test/simple"
    machine.build(
        "services", "--targets", "api", PIP_INDEX_URL=index, PIP_CERT=str(authority), PIP_FIND_LINKS="/here /there"
    )
    (call,) = machine.builds()
    assert call.secrets == {
        "ca.crt": CA,
        "pip.conf": f"[global]\nindex-url = {index}\ncert = /run/secrets/ca.crt\n\n",
    }
    assert "password" not in " ".join(call.arguments)
    assert [path for path in call.paths if path != str(authority) and Path(path).exists()] == []


def test_proxies_are_named_and_their_values_left_to_the_environment(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    machine.build("services", "--targets", "api", HTTPS_PROXY="http://somebody:password@proxy.test:3128")
    (call,) = machine.builds()
    assert "--build-arg=HTTPS_PROXY" in call.arguments
    assert "password" not in " ".join(call.arguments)


def test_archives_are_written_where_they_are_wanted(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    target = tmp_path / "archives"
    done = machine.build("services", "--targets", "api", "--tag", "1", "--save", str(target))
    assert done.returncode == 0, done.stderr
    assert target.is_dir()
    pushes = [call.arguments for call in machine.calls() if call.arguments[0] == "push"]
    name = "localhost/waybill-api:1"
    assert pushes == [["push", "--quiet", name, f"docker-archive:{target}/waybill-api.tar:{name}"]]


def test_the_servers_for_development_are_a_family_of_their_own(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    assert machine.build("dev", "--tag", "1").returncode == 0
    named = [after(call.arguments, "--tag") for call in machine.builds()]
    assert named == [f"localhost/waybill-dev-{name}:1" for name in ("postgres", "prometheus", "s3")]


def test_jaegers_image_is_made_of_a_program_alone(tmp_path: Path) -> None:
    machine = Machine(tmp_path, buildah=0)
    program = tmp_path / "jaeger-2"
    program.write_text("a program", encoding="utf-8")
    assert machine.build("jaeger", "--tag", "1", "--program", str(program)).returncode == 0
    (call,) = machine.builds()
    assert after(call.arguments, "--tag") == "localhost/waybill-dev-jaeger:1"
    assert Path(call.arguments[-1]) != ROOT
    assert not Path(call.arguments[-1]).exists(), "the context was temporary"
    refused = machine.build("jaeger", "--program", str(tmp_path / "nothing"))
    assert refused.returncode == 1
    assert refused.stderr == f"There is no program {tmp_path / 'nothing'}. JAEGER_BIN names Jaeger's.\n"

"""The Dockerfile's promises that can be read off it. `make test-images` builds it and looks at what runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from image_contents import roots
from lock_subset import APART

from support import dockerfiles
from support.dockerfiles import Stage
from waybill.config.registry import all_settings
from waybill.config.sources import variable

ROOT = Path(__file__).parents[2]
FILE = ROOT / "deploy/images/Dockerfile"
STAGES = dockerfiles.read(FILE)
IMAGES = sorted(roots().keys() - APART)
SETTINGS = {variable(name): field for settings in all_settings() for name, field in settings.model_fields.items()}


@pytest.fixture(params=IMAGES)
def image(request: pytest.FixtureRequest) -> Stage:
    return STAGES[request.param]


def test_there_is_a_target_for_each_image_and_nothing_else_builds_on_the_runtime() -> None:
    assert sorted(name for name, stage in STAGES.items() if stage.parent == "runtime") == IMAGES


def test_the_base_is_an_argument_and_everything_else_is_built_here() -> None:
    assert FILE.read_text(encoding="utf-8").count("\nARG BASE=") == 1
    assert {stage.parent for stage in STAGES.values()} == {"${BASE}", "tools", "runtime"}


def test_images_run_as_a_user_without_rights(image: Stage) -> None:
    assert STAGES["runtime"].only("USER") == "10001:10001"
    assert image.all("USER") == []


def test_no_shell_stands_between_the_signal_and_python(image: Stage) -> None:
    program, *arguments = image.command("ENTRYPOINT")
    assert STAGES["runtime"].only("STOPSIGNAL") == "SIGTERM"
    if image.name == "cli":
        assert (program, arguments) == ("waybill", [])
    else:
        assert (program, arguments) == ("python", ["-m", f"waybill_{image.name}"])


def test_what_serves_a_port_has_a_health_check_that_asks_it(image: Stage) -> None:
    how = image.only("HEALTHCHECK")
    if image.name in {"cli", "janitor"}:
        assert how == "NONE", "it ends by itself"
        return
    command = re.fullmatch(r"(?:--\S+ )+CMD \[(.+)\]", how)
    assert command is not None
    program, flags, script, name, port = re.findall(r'"([^"]+)"', command[1])
    assert (program, flags) == ("/opt/waybill/bin/python", "-IS")
    assert (FILE.parent / Path(script).name).exists()
    assert port in image.only("EXPOSE").split()
    assert SETTINGS[name].default == int(port)


def test_every_image_says_what_it_is(image: Stage) -> None:
    labels = STAGES["runtime"].labels() | image.labels()
    prefix = "org.opencontainers.image"
    assert labels[f"{prefix}.title"] == f"waybill-{image.name}"
    assert labels[f"{prefix}.licenses"] == "Apache-2.0"
    assert len(labels[f"{prefix}.description"]) > 20
    for name in ("version", "revision", "source"):
        assert labels[f"{prefix}.{name}"] == f"${name.upper()}"
        assert f"{name.upper()}=" in image.only("ARG")


def test_our_code_is_the_last_layer_so_a_change_of_it_replaces_nothing_else(image: Stage) -> None:
    assert image.all("COPY") == [f"--from={image.name}-files {folder} /" for folder in ("/locked", "/own")]
    assert image.all("RUN") == []


def test_every_dependency_is_installed_with_its_hash_and_the_whole_is_checked(image: Stage) -> None:
    files = STAGES[f"{image.name}-files"]
    locked, own = files.all("RUN")
    assert locked.endswith(f"/opt/tools/install.sh locked /locks/{image.name}.lock /locked")
    assert f"install.sh own /locks/{image.name}.own /own && " in own
    assert own.endswith("install.sh check /shared /locked /own")
    script = (FILE.parent / "install.sh").read_text(encoding="utf-8")
    assert "--require-hashes --only-binary :all:" in script
    for stage in STAGES.values():
        for command in stage.all("RUN"):
            if "pip install" in command:
                assert "--require-hashes --only-binary :all:" in command


def test_settings_of_the_environment_exist() -> None:
    for stage in STAGES.values():
        assert {name for name in stage.variables() if name.startswith("WAYBILL_")} <= SETTINGS.keys()


def test_secrets_are_mounted_and_no_address_is_written_down() -> None:
    text = FILE.read_text(encoding="utf-8") + (FILE.parent / "install.sh").read_text(encoding="utf-8")
    assert "://" not in text
    assert not re.search(r"(ARG|ENV) .*(PASSWORD|TOKEN|SECRET|KEY)", text)
    assert "PIP_CONFIG_FILE=/run/secrets/pip.conf" in text


def test_what_is_copied_exists_and_the_context_holds_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    allowed = {rule.removeprefix("!") for rule in rules if rule.startswith("!")}
    copied = {
        path
        for stage in STAGES.values()
        for text in stage.all("COPY")
        if not text.startswith("--from=")
        for path in text.split()[:-1]
    }
    for path in copied:
        assert (ROOT / path).exists(), path
        assert any(path == each or path.startswith(f"{each}/") for each in allowed), path
    assert allowed - {"deploy"} <= {path for each in copied for path in (each, *map(str, Path(each).parents))}

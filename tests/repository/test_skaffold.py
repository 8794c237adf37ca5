"""`skaffold.yaml` has only fields that Skaffold knows, and names only what exists.

Skaffold is not needed. The classes below are those parts of its configuration that the file uses, with the names and
types of its own documentation. Skaffold refuses names that it does not know, and so do they.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from support import dockerfiles

ROOT = Path(__file__).parents[2]
CHART = ROOT / "charts/waybill"
FILE = ROOT / "skaffold.yaml"
SERVICES = {f"waybill-{path.name}" for path in ROOT.glob("services/*")} | {"waybill-cli"}


class Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Metadata(Part):
    name: str


class Requirement(Part):
    configs: tuple[str, ...]


class TagPolicy(Part):
    input_digest: dict[str, str] = Field(alias="inputDigest", max_length=0)


class LocalBuild(Part):
    use_buildkit: bool = Field(alias="useBuildkit")
    push: bool | None = None


class DockerBuild(Part):
    dockerfile: str
    target: str


class Artifact(Part):
    image: str
    docker: DockerBuild


class Build(Part):
    tag_policy: TagPolicy = Field(alias="tagPolicy")
    local: LocalBuild
    artifacts: tuple[Artifact, ...]


class ProfileBuild(Part):
    local: LocalBuild


class Kustomize(Part):
    paths: tuple[str, ...]


class Manifests(Part):
    kustomize: Kustomize


class Release(Part):
    name: str
    chart_path: str = Field(alias="chartPath")
    namespace: str
    skip_build_dependencies: bool = Field(alias="skipBuildDependencies")
    values_files: tuple[str, ...] = Field(alias="valuesFiles")
    set_value_templates: dict[str, str] = Field(alias="setValueTemplates")


class HelmDeploy(Part):
    releases: tuple[Release, ...]


class KubectlDeploy(Part):
    pass


class Deploy(Part):
    status_check_deadline: int = Field(600, alias="statusCheckDeadlineSeconds")
    kube_context: str | None = Field(None, alias="kubeContext")
    helm: HelmDeploy | None = None
    kubectl: KubectlDeploy | None = None


class PortForward(Part):
    resource_type: Literal["service"] = Field(alias="resourceType")
    resource_name: str = Field(alias="resourceName")
    namespace: str
    port: int


class Profile(Part):
    name: str
    build: ProfileBuild
    deploy: Deploy


class Config(Part):
    api_version: Literal["skaffold/v4beta11"] = Field(alias="apiVersion")
    kind: Literal["Config"]
    metadata: Metadata
    requires: tuple[Requirement, ...] = ()
    build: Build
    manifests: Manifests | None = None
    deploy: Deploy
    port_forward: tuple[PortForward, ...] = Field((), alias="portForward")
    profiles: tuple[Profile, ...] = ()


@pytest.fixture(scope="module")
def written() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(FILE.read_text(encoding="utf-8")))


@pytest.fixture(scope="module")
def configs(written: list[dict[str, Any]]) -> dict[str, Config]:
    return {each["metadata"]["name"]: Config.model_validate(each) for each in written}


@pytest.fixture(scope="module")
def release(configs: dict[str, Config]) -> Release:
    helm = configs["waybill"].deploy.helm
    assert helm is not None
    (only,) = helm.releases
    return only


def test_a_field_that_skaffold_does_not_know_is_refused(written: list[dict[str, Any]]) -> None:
    with pytest.raises(ValidationError, match="artefacts"):
        Config.model_validate({**written[0], "build": {**written[0]["build"], "artefacts": []}})


def test_every_service_is_built_from_its_target(configs: dict[str, Config]) -> None:
    built = {artifact.image: artifact.docker for config in configs.values() for artifact in config.build.artifacts}
    assert set(built) == SERVICES | {"localhost/waybill-dev-s3"}
    for image, docker in built.items():
        stage = dockerfiles.read(ROOT / docker.dockerfile)[docker.target]
        assert stage.labels()["org.opencontainers.image.title"] == image.removeprefix("localhost/")


def test_the_servers_come_first_because_pods_wait_for_the_database(configs: dict[str, Config]) -> None:
    assert list(configs) == ["waybill-dev", "waybill"]
    assert configs["waybill"].requires == (Requirement(configs=("waybill-dev",)),)
    manifests = configs["waybill-dev"].manifests
    assert manifests is not None
    for path in manifests.kustomize.paths:
        assert (ROOT / path / "kustomization.yaml").exists()


def test_the_chart_gets_each_image_that_was_built(configs: dict[str, Config], release: Release) -> None:
    built = {artifact.image for artifact in configs["waybill"].build.artifacts}
    used = {re.sub(r"\W", "_", name): name for name in built}
    given = release.set_value_templates.items()
    named = {key: re.fullmatch(r"\{\{\.IMAGE_FULLY_QUALIFIED_(\w+)\}\}", value) for key, value in given}
    assert {used[match[1]] for match in named.values() if match} == built
    components = {f"{image.removeprefix('waybill-').replace('cli', 'migration')}.image" for image in built}
    assert set(named) == components


def test_everything_goes_where_the_servers_are(configs: dict[str, Config], release: Release) -> None:
    kustomization = yaml.safe_load((ROOT / "k8s/dev/kustomization.yaml").read_text(encoding="utf-8"))
    assert release.namespace == kustomization["namespace"]
    for config in configs.values():
        assert {each.namespace for each in config.port_forward} == {kustomization["namespace"]}


def test_the_profile_for_kind_pushes_nothing_and_stays_in_its_cluster(configs: dict[str, Config]) -> None:
    for config in configs.values():
        (profile,) = config.profiles
        assert (profile.name, profile.build.local.push) == ("kind", False)
        assert profile.deploy.kube_context == "kind-kind"


def test_the_chart_knows_every_value(release: Release) -> None:
    values = yaml.safe_load((ROOT / release.chart_path / "values.yaml").read_text(encoding="utf-8"))
    for key in release.set_value_templates:
        component, _, name = key.partition(".")
        assert name in values[component], key

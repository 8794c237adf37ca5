"""Every pod may do as little as possible, starts when it can work, and ends without losing anything."""

from __future__ import annotations

import pytest

from support.chart import MATRIX, Installation, Render, merged
from waybill.config.registry import all_settings
from waybill_convert.settings import ConvertSettings

pytestmark_all = pytest.mark.parametrize("name", MATRIX)


@pytestmark_all
def test_pods_are_restricted(installation: Installation, name: str) -> None:
    """The profile `restricted` of the pod security standards, and no writable root."""
    for pod in installation(name).pods:
        security = pod.spec["securityContext"]
        assert security["runAsNonRoot"] is True, pod.owner
        assert security["runAsUser"] > 0, pod.owner
        assert security["seccompProfile"] == {"type": "RuntimeDefault"}, pod.owner
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.spec.keys(), pod.owner
        assert not [volume for volume in pod.spec["volumes"] if "hostPath" in volume], pod.owner
        for container in pod.containers:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "capabilities": {"drop": ["ALL"]},
                "privileged": False,
                "readOnlyRootFilesystem": True,
            }, (pod.owner, container["name"])


@pytestmark_all
def test_only_the_operator_and_the_janitor_have_a_token(installation: Installation, name: str) -> None:
    for pod in installation(name).pods:
        with_token = pod.component in ("operator", "uninstall", "janitor")
        assert pod.spec["automountServiceAccountToken"] is with_token, pod.owner
    for account in installation(name).of("ServiceAccount").values():
        assert account["automountServiceAccountToken"] is False


@pytestmark_all
def test_a_service_called_waybill_api_sets_no_setting(installation: Installation, name: str) -> None:
    """Kubernetes would set WAYBILL_API_PORT=tcp://… in every pod of the namespace."""
    assert all(pod.spec["enableServiceLinks"] is False for pod in installation(name).pods)


@pytestmark_all
def test_every_container_asks_for_memory_and_has_a_limit(installation: Installation, name: str) -> None:
    for pod in installation(name).pods:
        for container in pod.containers:
            assert {"cpu", "memory"} <= container["resources"]["requests"].keys(), pod.owner
            assert "memory" in container["resources"]["limits"], pod.owner


@pytestmark_all
def test_pods_with_a_database_wait_for_the_schema_with_their_own_image(installation: Installation, name: str) -> None:
    for pod in installation(name).pods:
        waits = pod.component in ("api", "worker", "operator", "janitor")
        first = pod.spec.get("initContainers", [None])[0]
        assert waits == (first is not None and first["name"] == "await-schema"), pod.owner
        if waits:
            assert first["image"] == pod.main["image"]
            assert first["command"][:3] == ["python", "-m", "waybill.db.schema_gate"]


@pytestmark_all
def test_services_are_probed_where_they_answer(installation: Installation, name: str) -> None:
    probed = {"api": "http", "gateway": "http", "worker": "metrics", "operator": "metrics"}
    for pod in installation(name).pods:
        port = probed.get(pod.component)
        if port is not None:
            assert pod.main["livenessProbe"]["httpGet"] == {"path": "/livez", "port": port}
            assert pod.main["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": port}


def test_a_pod_is_given_longer_than_its_longest_work(installation: Installation) -> None:
    rendered = installation("minimal")
    longest_call = ConvertSettings.model_fields["gateway_timeout"].default
    (worker,) = rendered.pods_of("worker")
    grace = int(variables(worker.main)["WAYBILL_SHUTDOWN_GRACE"])
    assert worker.spec["terminationGracePeriodSeconds"] > grace > longest_call
    (gateway,) = rendered.pods_of("gateway")
    limits = {name: field.default for one in all_settings() for name, field in one.model_fields.items()}
    one_request = sum(limits[f"gateway_{step}_timeout"] for step in ("upload", "queue", "parse"))
    grace = int(variables(gateway.main)["WAYBILL_GATEWAY_SHUTDOWN_GRACE"])
    assert (
        gateway.spec["terminationGracePeriodSeconds"] > grace + gateway.main["lifecycle"]["preStop"]["sleep"]["seconds"]
    )
    assert longest_call > grace > one_request


def test_pods_of_services_that_are_called_leave_the_balancers_first(installation: Installation, render: Render) -> None:
    for component in ("api", "gateway"):
        (pod,) = installation("minimal").pods_of(component)
        assert pod.main["lifecycle"] == {"preStop": {"sleep": {"seconds": 5}}}
        (old,) = render(kubernetes="1.29.0").pods_of(component)
        assert old.main["lifecycle"]["preStop"]["exec"]["command"][0] == "python"
    assert "lifecycle" not in installation("little").pods_of("api")[0].main


def test_rolling_upgrades_take_no_pod_away_before_its_successor_is_ready(installation: Installation) -> None:
    for deployment in installation("CPU without the operator").of("Deployment").values():
        if not deployment["metadata"]["name"].endswith("-operator"):
            assert deployment["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    for name in MATRIX:
        for budget in installation(name).of("PodDisruptionBudget").values():
            assert budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_replicas_are_left_to_whoever_scales(installation: Installation) -> None:
    scaled, fixed = (
        installation("minimal").of("Deployment"),
        installation("fixed without the operator").of("Deployment"),
    )
    assert "replicas" not in scaled["prod-waybill-api"]["spec"]
    assert "replicas" not in scaled["prod-waybill-gateway"]["spec"]
    assert scaled["prod-waybill-operator"]["spec"]["replicas"] == 2
    assert fixed["prod-waybill-worker"]["spec"]["replicas"] == 2
    assert installation("fixed").of("Deployment")["prod-waybill-api"]["spec"]["replicas"] == 2


def test_all_pods_with_a_volume_of_one_node_are_kept_together(installation: Installation) -> None:
    together = {
        "topologyKey": "kubernetes.io/hostname",
        "labelSelector": {"matchLabels": {"waybill.dev/volume": "prod-waybill"}},
    }
    for pod in installation("minimal").pods:
        mounts = any("persistentVolumeClaim" in volume for volume in pod.spec["volumes"])
        assert mounts == (pod.component in ("api", "worker", "janitor"))
        rules = pod.spec.get("affinity", {}).get("podAffinity", {})
        assert (together in rules.get("requiredDuringSchedulingIgnoredDuringExecution", [])) == mounts, pod.owner
        assert (pod.labels.get("waybill.dev/volume") == "prod-waybill") == mounts
    # The affinity that a person gives is kept beside it.
    worker = installation("everything").pods_of("worker")[0]
    assert worker.spec["affinity"].keys() == {"podAffinity", "nodeAffinity"}
    for name in ("S3", "shared volume"):
        assert not [pod.owner for pod in installation(name).pods if "affinity" in pod.spec]


def test_pods_are_spread(installation: Installation) -> None:
    for pod in installation("minimal").pods:
        if pod.component in ("api", "gateway", "worker", "operator"):
            assert [each["topologyKey"] for each in pod.spec["topologySpreadConstraints"]] == [
                "topology.kubernetes.io/zone",
                "kubernetes.io/hostname",
            ]
    assert (
        installation("HA").pods_of("api")[0].spec["topologySpreadConstraints"][0]["whenUnsatisfiable"]
        == "DoNotSchedule"
    )
    assert not [pod for pod in installation("little").pods if "topologySpreadConstraints" in pod.spec]


def test_what_all_pods_have_a_component_may_replace(render: Render) -> None:
    everywhere = {
        "pods": {"nodeSelector": {"zone": "a"}, "priorityClassName": "low", "labels": {"team": "a", "x": "y"}}
    }
    here = {"api": {"nodeSelector": {"zone": "b"}, "priorityClassName": "high", "podLabels": {"team": "b"}}}
    for pod in render(merged(everywhere, here)).pods:
        ours = pod.component == "api"
        assert pod.spec["nodeSelector"] == {"zone": "b" if ours else "a"}
        assert pod.spec["priorityClassName"] == ("high" if ours else "low")
        assert (pod.labels["team"], pod.labels["x"]) == ("b" if ours else "a", "y")


def test_a_platform_may_choose_the_users(render: Render) -> None:
    users = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    pod = render({"pods": {"securityContext": users}}).pods_of("api")[0]
    assert not users.keys() & pod.spec["securityContext"].keys()


def test_pods_are_replaced_when_what_they_read_at_the_start_changes(render: Render) -> None:
    def annotations(**values: object) -> dict[str, str | None]:
        found = render({"secrets": {"existingSecret": "mine"}, **values})
        return {pod.owner: (pod.metadata.get("annotations") or {}).get("checksum/config") for pod in found.pods}

    one, same, other = annotations(), annotations(), annotations(worker={"concurrency": 20})
    assert one == same
    assert [owner for owner in one if one[owner] != other[owner]] == ["Deployment prod-waybill-operator"]


def variables(container: dict[str, object]) -> dict[str, str]:
    env = container["env"]
    assert isinstance(env, list)
    return {one["name"]: one["value"] for one in env if "value" in one}

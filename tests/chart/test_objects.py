"""What is true of all objects of all installations: valid, named, labelled, and nothing refers to what is not there."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from support.chart import MATRIX, Installation, PodTemplate, Rendered, matches, secret_references
from support.kubernetes_schemas import kubernetes_schemas

pytestmark = pytest.mark.parametrize("name", MATRIX)

THEIRS = {
    "my-database", "my-owner", "my-bucket", "keda-database", "mine", "collector", "registry", "papers", "mappings",
    "papers-tls", "more", "certificates",
}  # fmt: skip
"""What the values of the matrix say is there already."""


@pytest.fixture
def rendered(installation: Installation, name: str) -> Rendered:
    return installation(name)


def test_every_object_is_what_the_api_server_takes(rendered: Rendered, name: str) -> None:
    schemas = kubernetes_schemas()
    assert [problem for one in rendered.objects for problem in schemas.problems(one)] == []


def test_the_operators_template_is_one_of_pods(rendered: Rendered, name: str) -> None:
    template = rendered.operator_file("worker-template.yaml")
    if template is not None:
        pod = {"apiVersion": "v1", "kind": "Pod", **template}
        assert kubernetes_schemas().problems({**pod, "metadata": {"name": "worker", **template["metadata"]}}) == []


def test_no_two_objects_have_the_same_name(rendered: Rendered, name: str) -> None:
    names = Counter(
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in rendered.objects
    )
    assert [each for each, count in names.items() if count > 1] == []


def test_every_object_is_labelled_and_in_the_releases_namespace(rendered: Rendered, name: str) -> None:
    expected = {"app.kubernetes.io/instance": "prod", "app.kubernetes.io/part-of": "waybill"}
    for one in rendered.objects:
        metadata = one["metadata"]
        if metadata["name"] in ("more", "certificates"):  # the values' own
            continue
        if one["kind"] == "CustomResourceDefinition":  # it belongs to the cluster
            assert "app.kubernetes.io/part-of" in metadata["labels"]
            continue
        assert expected.items() <= metadata["labels"].items(), metadata
        cluster_wide = one["kind"] in ("APIService", "ClusterRole", "ClusterRoleBinding")
        elsewhere = one["kind"] == "RoleBinding" and metadata["namespace"] == "kube-system"
        assert elsewhere or metadata.get("namespace") == (None if cluster_wide else "papers"), metadata


def test_selectors_select_pods_that_are_there(rendered: Rendered, name: str) -> None:
    for one in rendered.objects:
        spec = one.get("spec", {})
        if one["kind"] in ("Deployment", "StatefulSet"):
            assert matches(spec["selector"], spec["template"]["metadata"]["labels"])
            others = [pod for pod in rendered.pods if pod.owner != f"{one['kind']} {one['metadata']['name']}"]
            assert not [pod.owner for pod in others if matches(spec["selector"], pod.labels)]
        elif one["kind"] == "Service":
            assert selected(rendered, {"matchLabels": spec["selector"]}), one["metadata"]
        elif one["kind"] == "PodDisruptionBudget":
            assert selected(rendered, spec["selector"]), one["metadata"]
        elif one["kind"] == "NetworkPolicy":
            workers_by_hand = one["metadata"]["name"].endswith("-worker")
            assert selected(rendered, spec["podSelector"]) or workers_by_hand, one["metadata"]
        elif one["kind"] == "PodMonitor":
            assert {pod.component for pod in selected(rendered, spec["selector"])} >= {"api", "worker", "gateway"}


def test_ports_that_are_named_are_there(rendered: Rendered, name: str) -> None:
    for one in rendered.of("Service").values():
        for pod in selected(rendered, {"matchLabels": one["spec"]["selector"]}):
            assert {port["targetPort"] for port in one["spec"]["ports"]} <= ports(pod)
    for one in rendered.of("NetworkPolicy").values():
        named = {
            port["port"]
            for rule in one["spec"]["ingress"]
            for port in rule.get("ports", ())
            if isinstance(port["port"], str)
        }
        for pod in selected(rendered, one["spec"]["podSelector"]):
            assert named <= ports(pod) or pod.component == "uninstall", (one["metadata"]["name"], pod.owner)
    for one in rendered.of("PodMonitor").values():
        for pod in selected(rendered, one["spec"]["selector"]):
            assert {endpoint["port"] for endpoint in one["spec"]["podMetricsEndpoints"]} <= ports(pod)
    for pod in rendered.pods:
        for container in pod.containers:
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                if get := container.get(probe, {}).get("httpGet"):
                    assert get["port"] in ports(pod)


def test_secrets_configurations_claims_and_accounts_are_there(rendered: Rendered, name: str) -> None:
    secrets, maps = rendered.of("Secret"), {*rendered.of("ConfigMap"), *THEIRS}
    made_later = {one["spec"]["secretName"] for one in rendered.of("Certificate").values()}
    claims = {*rendered.of("PersistentVolumeClaim"), *THEIRS}
    accounts = {*rendered.of("ServiceAccount"), "default"}
    for pod in rendered.pods:
        for secret, key in secret_references(pod):
            if secret in secrets:
                assert key is None or key in secrets[secret]["data"], (pod.owner, secret, key)
            else:
                assert secret in THEIRS | made_later, (pod.owner, secret)
        volumes = pod.spec.get("volumes", [])
        assert {volume["configMap"]["name"] for volume in volumes if "configMap" in volume} <= maps
        assert {
            volume["persistentVolumeClaim"]["claimName"] for volume in volumes if "persistentVolumeClaim" in volume
        } <= claims
        assert pod.spec.get("serviceAccountName", "default") in accounts
        mounts = {mount["name"] for container in pod.containers for mount in container["volumeMounts"]}
        made = {each["name"] for one in rendered.of("StatefulSet").values() for each in claims_of(one)}
        unmounted = {volume["name"] for volume in volumes} ^ mounts
        assert unmounted <= made, (pod.owner, unmounted)
    for one in rendered.of("TriggerAuthentication").values():
        for reference in one["spec"]["secretTargetRef"]:
            known = secrets.get(reference["name"])
            assert reference["name"] in THEIRS if known is None else reference["key"] in known["data"]


def test_bindings_scalers_and_routes_lead_somewhere(rendered: Rendered, name: str) -> None:
    for one in [*rendered.of("RoleBinding").values(), *rendered.of("ClusterRoleBinding").values()]:
        role = one["roleRef"]
        assert role["name"] in {*rendered.of(role["kind"]), "extension-apiserver-authentication-reader"}
        for subject in one["subjects"]:
            ours = subject["namespace"] == "papers"
            assert subject["name"] in rendered.of("ServiceAccount") if ours else subject["namespace"] == "kube-system"
    for one in [*rendered.of("HorizontalPodAutoscaler").values(), *rendered.of("ScaledObject").values()]:
        target = one["spec"]["scaleTargetRef"]
        if target["kind"] == "Deployment":
            assert "replicas" not in rendered.one("Deployment", target["name"])["spec"]
        else:
            assert (target["kind"], target["name"]) == ("WorkerPool", "default")
            assert rendered.operator_file("default-pool.yaml")["autoscaling"]["source"] == "external"
    for one in rendered.of("ScaledObject").values():
        for trigger in one["spec"]["triggers"]:
            assert trigger["authenticationRef"]["name"] in rendered.of("TriggerAuthentication")
    services = rendered.of("Service")
    for one in rendered.of("Ingress").values():
        for rule in one["spec"]["rules"]:
            for path in rule["http"]["paths"]:
                backend = path["backend"]["service"]
                names = {port["name"] for port in services[backend["name"]]["spec"]["ports"]}
                assert backend["port"]["name"] in names
    for one in rendered.of("HTTPRoute").values():
        for rule in one["spec"]["rules"]:
            for backend in rule["backendRefs"]:
                assert backend["port"] in {port["port"] for port in services[backend["name"]]["spec"]["ports"]}
    for one in rendered.of("APIService").values():
        service = one["spec"]["service"]
        assert service["port"] in {port["port"] for port in services[service["name"]]["spec"]["ports"]}


def selected(rendered: Rendered, selector: dict[str, Any]) -> list[PodTemplate]:
    return [pod for pod in rendered.pods if matches(selector, pod.labels)]


def ports(pod: PodTemplate) -> set[str]:
    return {port["name"] for container in pod.containers for port in container.get("ports", ())}


def claims_of(one: dict[str, Any]) -> list[dict[str, Any]]:
    return [each["metadata"] for each in one["spec"].get("volumeClaimTemplates", ())]

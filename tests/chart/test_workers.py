"""Workers: with the operator and without, scaled by each of the sources."""

from __future__ import annotations

import pytest
import yaml  # type: ignore[import-untyped]

from support.chart import MATRIX, Installation, Render, Rendered, merged
from support.helm import CHART

SOURCES = {"minimal": "builtin", "Prometheus adapter": "builtin", "KEDA": "external", "CPU": "cpu", "fixed": "none"}
"""Who scales the operator's pool. The adapter serves the same metric to the same autoscaler."""


@pytest.mark.parametrize(("name", "source"), SOURCES.items())
def test_the_pool_default_is_what_the_values_say(installation: Installation, name: str, source: str) -> None:
    rendered = installation(name)
    assert rendered.operator_file("default-pool.yaml") == {
        "queues": ["slow"] if name == "KEDA" else [],
        "kinds": ["convert_pdf"] if name == "KEDA" else [],
        "concurrency": 10,
        "processes": 1,
        "replicas": 2 if source == "none" else 1,
        "autoscaling": {
            "source": source,
            "minReplicas": 1,
            "maxReplicas": 10,
            "drainTargetSeconds": 60,
            "cpuUtilization": 80,
        },
        "resources": {"requests": {"cpu": "100m", "memory": "192Mi"}, "limits": {"memory": "768Mi"}},
        "disruptionBudget": {"enabled": True, "maxUnavailable": 1},
    }
    assert "prod-waybill-worker" not in {*rendered.of("Deployment"), *rendered.of("HorizontalPodAutoscaler")}


def test_no_pool_is_made_that_nobody_wants(installation: Installation) -> None:
    assert installation("little").operator_file("default-pool.yaml") is None
    assert installation("little").operator_file("worker-template.yaml") is not None


def test_a_plain_deployment_has_the_same_pods(installation: Installation) -> None:
    template = installation("minimal").operator_file("worker-template.yaml")
    plain = installation("CPU without the operator").one("Deployment", "prod-waybill-worker")["spec"]["template"]
    container = plain["spec"]["containers"][0]
    added = {"WAYBILL_WORKER_CONCURRENCY": "10", "WAYBILL_WORKER_PROCESSES": "1"}
    assert added == {one["name"]: one["value"] for one in container["env"] if one["name"] in added}
    container["env"] = [one for one in container["env"] if one["name"] not in added]
    assert plain["metadata"]["labels"].pop("waybill.dev/pool") == "default"
    # Secrets are made anew in each rendering without a cluster.
    for each in (template, plain):
        each["metadata"].pop("annotations")
    assert plain == template


def test_cpu_scales_the_plain_deployment(installation: Installation) -> None:
    scaler = installation("CPU without the operator").one("HorizontalPodAutoscaler", "prod-waybill-worker")["spec"]
    assert scaler["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert (scaler["minReplicas"], scaler["maxReplicas"]) == (1, 10)


def test_keda_asks_the_same_function_with_the_services_own_address(installation: Installation) -> None:
    scaled = installation("KEDA").one("ScaledObject", "prod-waybill-worker")["spec"]
    (trigger,) = scaled["triggers"]
    assert trigger["metadata"] == {
        "query": "SELECT waybill_workers_wanted(ARRAY['slow']::text[], ARRAY['convert_pdf']::text[], 10, 60)",
        "targetQueryValue": "1",
    }
    assert trigger["metricType"] == "AverageValue"
    assert scaled["scaleTargetRef"] == {"apiVersion": "waybill.dev/v1alpha1", "kind": "WorkerPool", "name": "default"}
    secret = installation("KEDA").one("TriggerAuthentication", "prod-waybill-worker")["spec"]["secretTargetRef"]
    assert secret == [{"parameter": "connection", "name": "prod-waybill-database", "key": "url"}]
    # KEDA lives in another namespace, where a bare name of a service means nothing.
    assert "@prod-waybill-postgres.papers:5432/" in installation("KEDA").secret("prod-waybill-database", "url")
    plain = installation("KEDA without the operator")
    assert plain.one("ScaledObject", "prod-waybill-worker")["spec"]["scaleTargetRef"]["kind"] == "Deployment"
    secret = plain.one("TriggerAuthentication", "prod-waybill-worker")["spec"]["secretTargetRef"]
    assert secret == [{"parameter": "connection", "name": "keda-database", "key": "url"}]


def test_the_adapters_rule_serves_our_metric_by_its_name(installation: Installation) -> None:
    rendered = installation("Prometheus adapter")
    (rule,) = yaml.safe_load(rendered.one("ConfigMap", "prod-waybill-adapter-rule")["data"]["rule.yaml"])
    assert rule["name"] == {"as": "waybill_workers_wanted"}
    assert rule["seriesQuery"].startswith('{__name__="waybill_workers_wanted"')
    assert metrics_api(rendered) == (set(), "0")


def test_the_metrics_api_is_there_for_the_builtin_source_alone(installation: Installation) -> None:
    for name, values in MATRIX.items():
        source = values.get("autoscaling", {}).get("metricsSource", "builtin")
        expected = ({"v1beta1.external.metrics.k8s.io"}, "8443") if source == "builtin" else (set(), "0")
        rendered = installation(name)
        if rendered.pods_of("operator"):
            assert metrics_api(rendered) == expected, name
        else:
            assert not rendered.of("APIService"), name


def metrics_api(rendered: Rendered) -> tuple[set[str], str]:
    """The APIService, and the port that the operator is told."""
    env = {one["name"]: one.get("value") for one in rendered.pods_of("operator")[0].main["env"]}
    return set(rendered.of("APIService")), str(env["WAYBILL_OPERATOR_METRICS_API_PORT"])


def test_the_certificate_is_for_the_names_by_which_the_api_server_calls(installation: Installation) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    rendered = installation("minimal")
    secret = "prod-waybill-operator-tls"
    authority = x509.load_pem_x509_certificate(rendered.secret(secret, "ca.crt").encode())
    certificate = x509.load_pem_x509_certificate(rendered.secret(secret, "tls.crt").encode())
    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert "prod-waybill-operator.papers.svc" in names.get_values_for_type(x509.DNSName)
    key = load_pem_private_key(rendered.secret(secret, "tls.key").encode(), password=None)
    assert key.public_key() == certificate.public_key()
    trusted = rendered.one("APIService", "v1beta1.external.metrics.k8s.io")["spec"]["caBundle"]
    assert trusted == rendered.one("Secret", secret)["data"]["ca.crt"]
    renew_after = int(rendered.one("Secret", secret)["metadata"]["annotations"]["waybill.dev/renew-after"])
    assert certificate.not_valid_before_utc.timestamp() < renew_after < certificate.not_valid_after_utc.timestamp()


def test_cert_manager_makes_the_certificate_where_it_is_wanted(installation: Installation) -> None:
    rendered = installation("everything")
    certificate = rendered.one("Certificate", "prod-waybill-operator-tls")["spec"]
    assert certificate["dnsNames"][0] == "prod-waybill-operator.papers.svc"
    assert certificate["issuerRef"]["name"] in rendered.of("Issuer")
    service = rendered.one("APIService", "v1beta1.external.metrics.k8s.io")
    injected = service["metadata"]["annotations"]["cert-manager.io/inject-ca-from"]
    assert injected == "papers/prod-waybill-operator-tls"
    assert "caBundle" not in service["spec"]
    theirs = installation("a certificate of somebody")
    assert theirs.one("Certificate", "prod-waybill-operator-tls")["spec"]["issuerRef"]["kind"] == "ClusterIssuer"
    assert not theirs.of("Issuer")


def test_rights_are_in_one_namespace_and_few(installation: Installation) -> None:
    rendered = installation("minimal")
    janitor = rendered.one("Role", "prod-waybill-janitor")["rules"]
    assert janitor == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    for role in rendered.of("Role").values():
        for rule in role["rules"]:
            assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
            assert not {"secrets", "configmaps", "roles"} & set(rule["resources"])
    (cluster_role,) = rendered.of("ClusterRole").values()
    assert cluster_role["rules"] == [
        {"apiGroups": ["external.metrics.k8s.io"], "resources": ["*"], "verbs": ["get", "list"]}
    ]
    (binding,) = rendered.of("ClusterRoleBinding").values()
    assert [subject["name"] for subject in binding["subjects"]] == ["horizontal-pod-autoscaler"]
    assert not installation("CPU").of("ClusterRole")


@pytest.mark.parametrize("source", ["keda", "cpu", "none"])
def test_an_account_of_one_namespace_can_install_it(render: Render, source: str) -> None:
    rendered = render({"crds": {"install": False}, "autoscaling": {"metricsSource": source}})
    assert {one["metadata"].get("namespace") for one in rendered.objects} == {"papers"}


def test_the_pools_are_removed_before_anything_else(installation: Installation) -> None:
    job = installation("minimal").one("Job", "prod-waybill-uninstall")
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-delete"
    (pod,) = installation("minimal").pods_of("uninstall")
    assert pod.main["command"] == ["python", "-m", "waybill_operator", "uninstall"]
    operator = installation("minimal").pods_of("operator")[0]
    assert (pod.spec["serviceAccountName"], pod.main["env"]) == (
        operator.spec["serviceAccountName"],
        operator.main["env"],
    )
    assert "prod-waybill-uninstall" not in installation("CPU without the operator").of("Job")


def test_the_migration_is_a_job_of_its_own_for_each_revision_and_no_hook(installation: Installation) -> None:
    rendered = installation("minimal")
    version = yaml.safe_load((CHART / "Chart.yaml").read_text())["version"]
    name = f"prod-waybill-migrate-{version.replace('.', '-')}-1"
    job = rendered.one("Job", name)
    assert "annotations" not in job["metadata"]
    spec = job["spec"]["template"]["spec"]
    assert [one["command"][:2] for one in spec["initContainers"]] == [["waybill", "migrate"]]
    assert spec["containers"][0]["command"][:4] == ["waybill", "apikey", "ensure", "admin"]
    (mount,) = [one for one in spec["containers"][0]["volumeMounts"] if one["name"] == "admin-key"]
    assert spec["containers"][0]["command"][-1].startswith(mount["mountPath"])
    assert "admin-key" not in str(spec["initContainers"])


def test_long_names_are_cut_where_something_is_added(render: Render) -> None:
    release = "a-release-with-a-name-of-fifty-three-characters-in-all"[:53]
    rendered = render(release=release)
    assert all(len(name) <= 52 for name in rendered.of("CronJob"))
    with_labels = [
        one for one in rendered.objects if one["kind"] not in ("ClusterRole", "ClusterRoleBinding", "RoleBinding")
    ]
    assert [one["metadata"]["name"] for one in with_labels if len(one["metadata"]["name"]) > 63] == []
    assert all(len(value) <= 63 for pod in rendered.pods for value in pod.labels.values())


def test_the_releases_name_is_not_repeated(render: Render) -> None:
    assert "waybill-api" in render(release="waybill").of("Deployment")
    assert "papers-api" in render({"fullnameOverride": "papers"}).of("Deployment")
    assert "prod-docs-api" in render(merged({"nameOverride": "docs"})).of("Deployment")

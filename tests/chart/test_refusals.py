"""Values that cannot work are refused, each with a sentence that says what to do, and all in one message."""

from __future__ import annotations

from typing import Any

import pytest

from support.chart import MINIMAL, merged
from support.helm import Helm

REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"postgres": {"enabled": False}}, "database: postgres.enabled is false, so say where your Postgres is"),
    ({"database": {"existingSecret": "mine"}}, "Set postgres.enabled=false to use yours"),
    (
        {"postgres": {"enabled": False}, "database": {"existingSecret": "mine", "url": "postgresql://db/waybill"}},
        "database: both url and existingSecret are set",
    ),
    ({"postgres": {"enabled": False}, "database": {"url": "mysql://db/waybill"}}, "database.url: must be an address"),
    ({"storage": {"volume": {"enabled": False}}}, "storage: there is neither a url nor a volume"),
    ({"storage": {"volume": {"oneNode": False}}}, "a ReadWriteOnce volume cannot be mounted on several nodes"),
    ({"storage": {"volume": {"accessModes": ["ReadWriteOncePod"]}}}, "can be used by one pod only"),
    ({"storage": {"url": "/data"}}, "storage.url: must begin with s3://, gs:// or az://"),
    ({"storage": {"url": "s3://papers", "volume": {"existingClaim": "c"}}}, "both url and volume.existingClaim"),
    ({"storage": {"url": "s3://papers", "keyId": "id"}}, "storage.keyId: its secret is missing"),
    ({"storage": {"existingSecret": "mine"}}, "storage: there are credentials and no url"),
    (
        {"storage": {"url": "s3://papers", "existingSecret": "mine", "secret": "x"}},
        "storage: both existingSecret and secret or keyId are set",
    ),
    ({"operator": {"enabled": False}}, "autoscaling.metricsSource: `builtin` needs the operator"),
    (
        {"operator": {"enabled": False}, "autoscaling": {"metricsSource": "prometheus-adapter"}},
        "autoscaling.metricsSource: `prometheus-adapter` needs the operator",
    ),
    (
        {"worker": {"autoscaling": {"minReplicas": 5, "maxReplicas": 2}}},
        "worker.autoscaling: minReplicas (5) is more than maxReplicas (2)",
    ),
    ({"ingress": {"enabled": True}}, "ingress.hosts: is empty"),
    ({"httpRoute": {"enabled": True}}, "httpRoute.parentRefs: is empty"),
    ({"migration": {"enabled": False}}, "adminKey: nobody would register the key"),
    ({"telemetry": {"otlpEndpoint": "collector:4318"}}, "telemetry.otlpEndpoint: must be an address"),
    (
        {"operator": {"serviceAccount": {"create": False}}},
        "operator.serviceAccount: with the account `default`, every pod of the namespace",
    ),
    ({"janitor": {"serviceAccount": {"create": False}}}, "janitor.serviceAccount: with the account `default`"),
    ({"settings": {"WAYBILL_DATABASE_URL": "x"}}, "settings.WAYBILL_DATABASE_URL: the chart sets this one itself"),
    ({"settings": {"WAYBILL_API_HOSTS": "x"}}, "settings.WAYBILL_API_HOSTS: the chart sets this one itself"),
    (
        {"gateway": {"extraEnv": [{"name": "WAYBILL_GATEWAY_PROCESSES", "value": "9"}]}},
        "gateway.extraEnv: WAYBILL_GATEWAY_PROCESSES is set already",
    ),
    ({"replicaCount": 3}, "replicaCount: there is no such value. Use api.replicas"),
    ({"postgresql": {"enabled": False}}, "postgresql: there is no such value. Use postgres"),
    ({"image": {"repository": "waybill"}}, "image.repository: there is no such value. Use image.registry"),
    (
        {"worker": {"autoscaling": {"enabled": False}}},
        "worker.autoscaling.enabled: there is no such value. Use autoscaling.metricsSource",
    ),
]


@pytest.mark.parametrize(("values", "sentence"), REFUSED, ids=[sentence[:60] for _, sentence in REFUSED])
def test_what_cannot_work_is_refused_with_a_sentence(helm: Helm, values: dict[str, Any], sentence: str) -> None:
    said = helm.refusal(merged(MINIMAL, values))
    assert f"- {sentence}" in said or sentence in said
    assert said.count("\n- ") == 1, said


def test_all_problems_are_in_one_message(helm: Helm) -> None:
    said = helm.refusal(
        {
            "postgres": {"enabled": False},
            "storage": {"volume": {"enabled": False}},
            "ingress": {"enabled": True},
            "replicaCount": 2,
            "worker": {"autoscaling": {"minReplicas": 9, "maxReplicas": 3}},
        }
    )
    about = ("replicaCount:", "image.registry:", "database:", "storage:", "worker.autoscaling:", "ingress.hosts:")
    assert [each for each in about if f"\n- {each}" not in said] == []


def test_without_a_registry_it_says_how_to_build_and_load_the_images(helm: Helm) -> None:
    said = helm.refusal({"image": {"tag": "1.2.3"}})
    assert "make images REGISTRY=localhost" in said
    assert "kind load docker-image localhost/waybill-{api,worker,gateway,janitor,operator,cli}:1.2.3" in said
    assert "--set image.registry=localhost" in said


def test_images_of_ones_own_need_no_registry(helm: Helm) -> None:
    names = ("api", "worker", "gateway", "operator", "janitor", "migration")
    objects = helm.render({name: {"image": f"test/{name}@sha256:{'0' * 64}"} for name in names})
    assert f"test/gateway@sha256:{'0' * 64}" in str(objects)


@pytest.mark.parametrize(
    ("given", "place", "reason"),
    [
        ("api.replica=2", "api", "replica"),
        ("apis.replicas=2", "", "apis"),
        ("api.replicas=many", "replicas", "integer"),
        ("api.autoscaling.minReplicas=0", "minReplicas", "1"),
        ("image.pullPolicy=Sometimes", "pullPolicy", "one of"),
        ("autoscaling.metricsSource=magic", "metricsSource", "one of"),
        ("settings.LOG_LEVEL=debug", "settings", "LOG_LEVEL"),
        ("worker.queues={Not a queue}", "queues", "pattern"),
    ],
)
def test_unknown_and_impossible_values_are_refused_where_they_are(
    helm: Helm, given: str, place: str, reason: str
) -> None:
    said = helm.refusal(MINIMAL, given)
    assert place in said
    assert reason in said

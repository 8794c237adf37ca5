"""Who may talk to whom: what a job's way needs, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from support.chart import MATRIX, Installation, PodTemplate, Render, Rendered, matches, merged

DNS = {("dns", 53)}
SERVERS = {"api": 8080, "gateway": 8081, "postgres": 5432, "operator": 8443}


@pytest.mark.parametrize("name", [name for name in MATRIX if name != "no network policies"])
def test_every_pod_is_denied_whatever_is_not_listed(installation: Installation, name: str) -> None:
    rendered = installation(name)
    for pod in rendered.pods:
        policies = policies_of(rendered, pod)
        assert len(policies) == 1, (pod.owner, [each["metadata"]["name"] for each in policies])
        assert policies[0]["spec"]["policyTypes"] == ["Ingress", "Egress"]


def test_pods_reach_what_they_need_and_nothing_else(installation: Installation) -> None:
    expected = {
        "api": {"postgres", "gateway"},
        "worker": {"postgres", "gateway"},
        "gateway": set(),
        "operator": {"postgres"},
        "uninstall": {"postgres"},
        "janitor": {"postgres"},
        "migration": {"postgres"},
        "postgres": set(),
        "test": {"api"},
    }
    rendered = installation("minimal")
    for pod in rendered.pods:
        reached = {
            other.component
            for other in rendered.pods
            if other.component in SERVERS and other.component != "operator" and passes(rendered, pod, other)
        }
        assert reached == expected[pod.component], pod.owner


def test_the_gateway_reaches_names_and_the_collector_only(installation: Installation) -> None:
    assert outside(installation("minimal"), "gateway") == DNS
    assert outside(installation("S3"), "gateway") == DNS
    egress = installation("everything").one("NetworkPolicy", "prod-waybill-gateway")["spec"]["egress"]
    ports = [[port["port"] for port in rule.get("ports", ())] for rule in egress]
    assert ports == [[53, 53], [4318], []]  # the last is the values' own
    assert egress[1]["to"][0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "observability"}


def test_only_those_who_need_it_reach_the_world(installation: Installation) -> None:
    rendered = installation("HA")
    database, storage, cluster = {("any", 5432)}, {("any", 443)}, {("any", 443), ("any", 6443)}
    assert outside(rendered, "api") == DNS | database | storage
    assert outside(rendered, "worker") == DNS | database | storage
    assert outside(rendered, "operator") == DNS | database | cluster
    assert outside(rendered, "janitor") == DNS | database | storage | cluster
    assert outside(rendered, "migration") == DNS | database
    assert outside(installation("minimal"), "api") == DNS


def test_peers_close_what_is_open(render: Render) -> None:
    peers = [{"ipBlock": {"cidr": "10.1.0.0/16"}}]
    places = {"database": {"peers": peers, "ports": [6432]}, "storage": {"peers": peers, "ports": [9000]}}
    rendered = render(
        merged(
            MATRIX["HA"],
            {"networkPolicies": {**places, "kubernetesApi": {"peers": peers}}, "janitor": {"watchPods": False}},
        )
    )
    assert outside(rendered, "worker") == DNS | {("10.1.0.0/16", 6432), ("10.1.0.0/16", 9000)}
    assert outside(rendered, "janitor") == outside(rendered, "worker")
    assert not {place for place, _ in outside(rendered, "operator")} & {"any"}


def test_callers_and_prometheus_are_chosen_by_the_values(installation: Installation) -> None:
    def ingress(name: str) -> list[dict[str, Any]]:
        rules = installation(name).one("NetworkPolicy", "prod-waybill-api")["spec"]["ingress"]
        assert isinstance(rules, list)
        return rules

    assert "from" not in ingress("minimal")[0]
    peers = ingress("everything")[0]["from"]
    assert peers[0]["namespaceSelector"]["matchLabels"] == {"kubernetes.io/metadata.name": "ingress"}
    assert peers[1]["podSelector"]["matchExpressions"][0]["values"] == ["test"]
    for rules in (ingress("minimal"), ingress("everything")):
        assert rules[1]["ports"] == [{"protocol": "TCP", "port": "metrics"}]
        assert rules[1]["from"][0]["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "prometheus"}


def test_the_collectors_port_is_that_of_its_address(render: Render) -> None:
    for address, port in (
        ("http://collector.observability:4317", 4317),
        ("https://otlp.example.com", 443),
        ("http://collector/v1/traces", 80),
    ):
        assert ("any", port) in outside(render({"telemetry": {"otlpEndpoint": address}}), "gateway")


def policies_of(rendered: Rendered, pod: PodTemplate) -> list[dict[str, Any]]:
    return [one for one in rendered.of("NetworkPolicy").values() if matches(one["spec"]["podSelector"], pod.labels)]


def passes(rendered: Rendered, source: PodTemplate, target: PodTemplate) -> bool:
    """Whether a policy of each side lets the source reach the target's server."""
    number = SERVERS[target.component]
    names = {port["name"] for port in target.main["ports"] if port["containerPort"] == number}
    out = [rule for one in policies_of(rendered, source) for rule in one["spec"]["egress"]]
    into = [rule for one in policies_of(rendered, target) for rule in one["spec"]["ingress"]]
    return any(allows(rule, "to", target, {number, *names}) for rule in out) and any(
        allows(rule, "from", source, {number, *names}) for rule in into
    )


def allows(rule: dict[str, Any], side: str, pod: PodTemplate, ports: set[int | str]) -> bool:
    if "ports" in rule and not ports & {port["port"] for port in rule["ports"]}:
        return False
    return side not in rule or any(
        "podSelector" in peer and "namespaceSelector" not in peer and matches(peer["podSelector"], pod.labels)
        for peer in rule[side]
    )


def outside(rendered: Rendered, component: str) -> set[tuple[str, int]]:
    """Where the pods of a component may go beyond pods of this release: (place, port)."""
    found = set()
    for rule in policies_of(rendered, rendered.pods_of(component)[0])[0]["spec"]["egress"]:
        for peer in rule.get("to", [{}]):
            if "podSelector" in peer and "namespaceSelector" not in peer:
                continue
            block = peer.get("ipBlock", {}).get("cidr")
            dns = "namespaceSelector" in peer or block == "169.254.20.10/32"
            place = "dns" if dns else block or "any"
            found |= {(place, port["port"]) for port in rule["ports"]}
    return found

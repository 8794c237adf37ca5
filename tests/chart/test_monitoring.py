"""What Prometheus and Grafana get is what the repository has for them."""

from __future__ import annotations

import json
import re

from support.chart import Installation
from waybill_cli.monitoring.dashboard import dashboard_text
from waybill_cli.monitoring.rules import rules_text


def test_the_alerts_are_the_repositorys_with_links_to_where_people_read(installation: Installation) -> None:
    import yaml  # type: ignore[import-untyped]

    groups = installation("everything").one("PrometheusRule", "prod-waybill")["spec"]["groups"]
    assert groups == yaml.safe_load(rules_text(docs="https://wiki.test/waybill"))["groups"]


def test_the_dashboard_is_the_repositorys(installation: Installation) -> None:
    config = installation("everything").one("ConfigMap", "prod-waybill-dashboard")
    assert json.loads(config["data"]["waybill.json"]) == json.loads(dashboard_text())
    assert config["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert config["metadata"]["annotations"]["grafana_folder"] == "Papers"


def test_jobs_have_the_names_that_the_alerts_know(installation: Installation) -> None:
    monitor = installation("everything").one("PodMonitor", "prod-waybill")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    (endpoint,) = monitor["spec"]["podMetricsEndpoints"]
    (relabelling,) = endpoint["relabelings"]
    assert relabelling["sourceLabels"] == ["__meta_kubernetes_pod_label_app_kubernetes_io_component"]
    components = monitor["spec"]["selector"]["matchExpressions"][0]["values"]
    jobs = {relabelling["replacement"].replace("$1", component) for component in components}
    known = set(re.findall(r"waybill-(?:api|gateway|worker|operator)\b", rules_text()))
    assert known <= jobs


def test_nothing_of_it_is_there_unless_it_is_wanted(installation: Installation) -> None:
    kinds = {one["kind"] for one in installation("minimal").objects}
    assert not kinds & {"PodMonitor", "PrometheusRule", "ScaledObject", "Certificate", "HTTPRoute", "Ingress"}
    assert "prod-waybill-dashboard" not in installation("minimal").of("ConfigMap")

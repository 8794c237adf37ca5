"""What a person reads after `helm install`: the next step, and what is not fit for production."""

from __future__ import annotations

from support.chart import EVERYTHING, HA, MATRIX, with_registry
from support.helm import Helm


def test_they_tell_the_next_steps(helm: Helm) -> None:
    notes = helm.notes(with_registry({}))
    assert "port-forward service/prod-waybill-api 8080:8080" in notes
    assert (
        "get secret prod-waybill-admin-key --output go-template='{{index .data \"api-key\" | base64decode}}'" in notes
    )
    assert "helm --namespace papers test prod --logs" in notes
    assert "get workerpools" in notes


def test_they_warn_of_what_is_for_evaluation(helm: Helm) -> None:
    notes = helm.notes(with_registry({}))
    assert "WARNING: The Postgres of this release is for evaluation" in notes
    assert "WARNING: Documents are on one volume" in notes
    open_ingress = helm.notes(with_registry({"ingress": {"enabled": True, "hosts": ["papers.test"]}}))
    assert "WARNING: The Ingress has no TLS" in open_ingress
    assert "http://papers.test/" in open_ingress
    assert "NOTE: The API answers under every host name" in open_ingress
    assert "WARNING: There are no network policies" in helm.notes(with_registry(MATRIX["no network policies"]))
    assert "WARNING: There is no worker until you create a WorkerPool" in helm.notes(with_registry(MATRIX["little"]))


def test_production_is_warned_of_nothing(helm: Helm) -> None:
    assert "WARNING" not in helm.notes(with_registry(HA))


def test_they_name_the_address_and_the_adapters_rule(helm: Helm) -> None:
    notes = helm.notes({**EVERYTHING, "autoscaling": {"metricsSource": "prometheus-adapter"}})
    assert "https://papers.test/" in notes
    assert "get configmap prod-waybill-adapter-rule" in notes
    assert "NOTE:" not in notes

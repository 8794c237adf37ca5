"""The chart gives its service accounts the rights that they use, and no others."""

from __future__ import annotations

import json

from support.cluster import Cluster, Object
from support.control_plane import ControlPlane
from support.patience import wait_until
from support.process_node import ProcessNode
from support.release import Release, merged
from support.tried_release import PROCESS, TriedRelease, installed

Right = tuple[str, str, str]
"""An API group, a resource with its subresource, and a verb."""

UNSEEN: dict[str, set[Right]] = {
    # Asked for by admission where owner references are enforced, and never by a request.
    "operator": {("waybill.dev", "workerpools/finalizers", "update")},
    "janitor": set(),
}


def test_every_right_of_the_operator_and_the_janitor_is_used_and_none_is_missing(
    cluster: Cluster, plane: ControlPlane, node: ProcessNode, release: Release, empty_database_url: str
) -> None:
    release.values = merged(release.values, {"janitor": PROCESS, "worker": PROCESS})
    with installed(release, plane, node, empty_database_url) as tried:
        rights = {each: _rights(cluster, release.namespace, f"waybill-{each}") for each in ("operator", "janitor")}
        accounts = {each: f"system:serviceaccount:{release.namespace}:waybill-{each}" for each in rights}

        # All that an operator does in its life: pools come, change, scale and go, another one takes over.
        where = f"--namespace={release.namespace}"
        tried.apply_pool("other", autoscaling={"source": "builtin"})
        tried.until_pool("other", "Ready")
        tried.apply_pool("other", concurrency=3, autoscaling={"source": "none"})
        without = json.dumps({"spec": {"disruptionBudget": {"enabled": False}}})
        cluster.kubectl("patch", "workerpool", "other", "--type=merge", "-p", without, where)
        cluster.wait("delete", "hpa/waybill-worker-other", "pdb/waybill-worker-other", namespace=release.namespace)
        cluster.kubectl("scale", "workerpool/other", "--replicas=2", where)
        cluster.wait("jsonpath={.status.readyReplicas}=2", "workerpool/other", namespace=release.namespace)
        # A worker is busy, and gone without a word.
        tried.until_pool("default", "Ready")
        tried.enqueue(100, steps=200)
        wait_until(lambda: _patched_pods(tried) > 0, "busy workers are marked", every=0.5)
        [worker] = release.pods("worker")[:1]
        cluster.kubectl("delete", "pod", worker["metadata"]["name"], "--force", "--grace-period=0", where)
        tried.leader().container().kill()
        cluster.delete("workerpool", "other", release.namespace)
        cluster.kubectl("create", "job", "tidy", "--from=cronjob/waybill-janitor", where)
        cluster.wait("condition=Complete", "job/tidy", namespace=release.namespace)
        release.uninstall()

    for component, account in accounts.items():
        requests = [each for each in tried.requests(account) if "objectRef" in each]
        refused = sorted({_said(each) for each in requests if each["responseStatus"]["code"] == 403})
        assert refused == [], f"the {component} lacks rights"
        used = set().union(*map(_rights_of, requests)) | UNSEEN[component]
        assert sorted(rights[component] - used) == [], f"the {component} has rights that it does not use"


def _rights(cluster: Cluster, namespace: str, account: str) -> set[Right]:
    """What the account may do, by the roles of its namespace."""
    found: set[Right] = set()
    for binding in cluster.list("rolebindings", namespace):
        if account in [subject["name"] for subject in binding.get("subjects", ())]:
            role = cluster.get(binding["roleRef"]["kind"].lower(), binding["roleRef"]["name"], namespace)
            for rule in role["rules"]:
                found |= {
                    (group, resource, verb)
                    for group in rule["apiGroups"]
                    for resource in rule["resources"]
                    for verb in rule["verbs"]
                }
    assert found, f"{account} has no role"
    return found


def _rights_of(request: Object) -> set[Right]:
    """The rights that a request needs. Applying what is not there yet needs the right to create it, too."""
    group, resource, verb = _right(request)
    made = verb == "patch" and request["responseStatus"]["code"] == 201
    return {(group, resource, verb), *([(group, resource, "create")] if made else [])}


def _patched_pods(tried: TriedRelease) -> int:
    return sum(_right(each) == ("", "pods", "patch") for each in tried.requests(tried.account) if "objectRef" in each)


def _right(request: Object) -> Right:
    ref = request["objectRef"]
    resource = ref["resource"] + (f"/{ref['subresource']}" if "subresource" in ref else "")
    return ref.get("apiGroup", ""), resource, request["verb"]


def _said(request: Object) -> str:
    return json.dumps([*_right(request), request["responseStatus"].get("message", "")])

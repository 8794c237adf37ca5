"""The schemas in the repository are those of a real API server, and judge as it does."""

from __future__ import annotations

import json

import pytest

from support.api_schemas import collect
from support.cluster import Cluster, Object, Refused
from support.kubernetes_schemas import FILE, kubernetes_schemas


def test_the_file_is_what_the_api_server_publishes(cluster: Cluster) -> None:
    published, kept = collect(cluster), json.loads(FILE.read_text())
    if published["version"].rpartition(".")[0] != kept["version"].rpartition(".")[0]:
        pytest.skip(f"the file is about {kept['version']}, and the API server is {published['version']}")
    assert published["schemas"] == kept["schemas"], "run `make api-schemas`"
    assert published["kinds"] == kept["kinds"]


BAD: dict[str, Object] = {
    "an unknown field": {"kind": "ConfigMap", "data": {}, "date": {}},
    "a number for a text": {"kind": "ConfigMap", "data": {"a": 1}},
    "a text for a number": {"kind": "Service", "spec": {"ports": [{"port": "80"}]}},
    "a missing field": {"kind": "Pod", "spec": {"containers": [{"image": "x"}]}},
    "a name in capitals": {"kind": "ConfigMap", "metadata": {"name": "Bad"}},
    "an impossible label": {"kind": "ConfigMap", "metadata": {"name": "bad", "labels": {"a": "not so"}}},
}


@pytest.mark.parametrize("what", BAD)
def test_both_refuse(cluster: Cluster, namespace: str, what: str) -> None:
    item = {"apiVersion": "v1", "metadata": {"name": "bad"}, **BAD[what]}
    assert kubernetes_schemas().problems(item)
    with pytest.raises(Refused):
        cluster.kubectl(
            "create", "--validate=strict", "--dry-run=server", "-f", "-", f"-n{namespace}", stdin=json.dumps(item)
        )

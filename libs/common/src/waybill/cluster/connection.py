"""Opens the way to the API server: by the pod's service account, or by `$KUBECONFIG` for everybody else."""

from __future__ import annotations

import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from waybill import __version__
from waybill.cluster.api import ClusterApi
from waybill.cluster.errors import NotReachable

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_MOST_CONNECTIONS = 20


def in_reach() -> bool:
    """Whether this process has the means to ask a cluster. It says nothing about whether the cluster answers."""
    return bool(os.environ.get("KUBECONFIG")) or _in_pod()


def own_namespace() -> str | None:
    """The namespace of the pod that this process runs in, if it runs in one."""
    if named := os.environ.get("POD_NAMESPACE"):
        return named
    try:
        return (_ACCOUNT / "namespace").read_text().strip() or None
    except OSError:
        return None


def own_pod_name() -> str:
    """The name of the pod that this process runs in, which is its host name unless somebody changed that."""
    return os.environ.get("POD_NAME") or socket.gethostname()


@asynccontextmanager
async def cluster_api(client_name: str = "waybill") -> AsyncIterator[ClusterApi]:
    """The API of the cluster that we are in, while the block runs. `NotReachable` if there is none.

    `client_name` is how the server's audit log names us. `$KUBECONFIG` wins over the service account, so that a person
    decides.
    """
    if not in_reach():
        raise NotReachable(
            "There is no cluster here: the pod has no service account token (`automountServiceAccountToken`), and"
            " KUBECONFIG is not set."
        )
    # Imported now: most processes never need them.
    from kubernetes.aio.client import ApiClient, Configuration
    from kubernetes.aio.config import load_incluster_config, load_kube_config

    configuration = Configuration()  # not the process-wide one
    try:
        if named := os.environ.get("KUBECONFIG"):
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=named, client_configuration=configuration, persist_config=False
            )
        else:
            load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
    except Exception as error:  # whatever the client makes of a broken file
        raise NotReachable(f"The way to the cluster cannot be read: {error}") from error
    # Python 3.13 refuses certificates that lack an extension, as those of many clusters do. kubectl accepts them.
    configuration.disable_strict_ssl_verification = True
    configuration.connection_pool_maxsize = _MOST_CONNECTIONS
    try:
        client = ApiClient(configuration)
    except (OSError, ValueError) as error:
        raise NotReachable(f"The cluster's certificates cannot be read: {error}") from error
    client.user_agent = f"{client_name}/{__version__}"
    try:
        yield ClusterApi(client)
    finally:
        await client.close()  # type: ignore[no-untyped-call]


def _in_pod() -> bool:
    return bool(os.environ.get("KUBERNETES_SERVICE_HOST")) and (_ACCOUNT / "token").is_file()

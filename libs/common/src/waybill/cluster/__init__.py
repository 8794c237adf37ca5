"""The API of the Kubernetes cluster that a process runs in: objects as plain JSON, typed errors, watches that resume.

Nothing here is imported by a process that does not ask for it, and the official client, which is heavy (45 MB), is
imported only when a connection is opened. It brings the configuration, the credentials and the transport.
"""

from waybill.cluster.api import ClusterApi, Object, ObjectList, WatchEvent
from waybill.cluster.connection import cluster_api, in_reach, own_namespace, own_pod_name
from waybill.cluster.errors import (
    AlreadyThere,
    Away,
    ChangedMeanwhile,
    ClusterError,
    HistoryGone,
    Invalid,
    NoSuchObject,
    NotAllowed,
    NotReachable,
    WatchCut,
    Withheld,
)
from waybill.cluster.informer import Informer
from waybill.cluster.resources import Resource

__all__ = [
    "AlreadyThere",
    "Away",
    "ChangedMeanwhile",
    "ClusterApi",
    "ClusterError",
    "HistoryGone",
    "Informer",
    "Invalid",
    "NoSuchObject",
    "NotAllowed",
    "NotReachable",
    "Object",
    "ObjectList",
    "Resource",
    "WatchCut",
    "WatchEvent",
    "Withheld",
    "cluster_api",
    "in_reach",
    "own_namespace",
    "own_pod_name",
]

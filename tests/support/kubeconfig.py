"""Writes the files with which programs log in to a cluster."""

from __future__ import annotations

import json
from pathlib import Path


def write_kubeconfig(
    path: Path, server: str, authority: Path, user: dict[str, str], namespace: str = "default"
) -> Path:
    """Write a kubeconfig with one user in one cluster. JSON is YAML, and its programs read either."""
    configuration = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "test", "cluster": {"server": server, "certificate-authority": str(authority)}}],
        "users": [{"name": "user", "user": user}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "user", "namespace": namespace}}],
        "current-context": "test",
    }
    path.write_text(json.dumps(configuration))
    path.chmod(0o600)
    return path

"""A cluster as a person sees it: through kubectl and helm.

It serves the tests against a control plane of their own as well as those against any cluster that `$KUBECONFIG` names.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.kubeconfig import write_kubeconfig
from support.port_forward import PortForward

Object = dict[str, Any]


_RESTRICTED = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
_numbers = itertools.count(1)


class Refused(AssertionError):
    """A program of the cluster failed; its words are in the message."""


class Cluster:
    """A cluster, logged in to by a kubeconfig."""

    def __init__(self, kubeconfig: Path, *, kubectl: str, folder: Path) -> None:
        """`folder` takes what kubectl and helm remember, and the kubeconfigs of service accounts."""
        self.kubeconfig = kubeconfig
        self._kubectl = kubectl
        self._folder = folder

    def kubectl(self, *arguments: str, stdin: str | None = None, within: float = 180) -> str:
        """Run kubectl, and return what it printed."""
        login = [f"--kubeconfig={self.kubeconfig}", f"--cache-dir={self._folder / 'kubectl-cache'}"]
        return _run([self._kubectl, *login, *arguments], dict(os.environ), stdin, within)

    def forward(self, target: str, port: int, namespace: str, **client: Any) -> PortForward:
        """A way to a port of a service or a pod: `service/waybill-api`."""
        login = [self._kubectl, f"--kubeconfig={self.kubeconfig}", "port-forward", "--address=127.0.0.1"]
        return PortForward([*login, target, f":{port}", *_in(namespace)], **client)

    def helm(self, *arguments: str, within: float = 300) -> str:
        """Run helm, and return what it printed."""
        return _run([_helm(), *arguments], self.environment(), None, within)

    def environment(self) -> dict[str, str]:
        """The variables with which helm finds the cluster, and writes nothing into the home folder."""
        helm_folders = {
            f"HELM_{kind}_HOME": str(self._folder / f"helm-{kind.lower()}") for kind in ("CACHE", "DATA", "CONFIG")
        }
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), **helm_folders}

    def get(self, kind: str, name: str, namespace: str | None = None) -> Object:
        found: Object = json.loads(self.kubectl("get", kind, name, "-o", "json", *_in(namespace)))
        return found

    def find(self, kind: str, name: str, namespace: str | None = None) -> Object | None:
        """The object, or None if there is none of this name."""
        text = self.kubectl("get", kind, name, "-o", "json", "--ignore-not-found", *_in(namespace))
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, namespace: str | None = None, selector: str = "") -> list[Object]:
        """All objects of a kind, without a namespace those of every namespace."""
        where = _in(namespace) if namespace else ["--all-namespaces"]
        items: list[Object] = json.loads(self.kubectl("get", kind, "-o", "json", f"--selector={selector}", *where))[
            "items"
        ]
        return items

    def create(self, item: Object, namespace: str | None = None) -> Object:
        made: Object = json.loads(
            self.kubectl("create", "-f", "-", "-o", "json", *_in(namespace), stdin=json.dumps(item))
        )
        return made

    def apply(self, item: Object, namespace: str | None = None) -> Object:
        """Apply an object on the server's side, as a person would who keeps it in a file."""
        arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-", "-o", "json", *_in(namespace)]
        applied: Object = json.loads(self.kubectl(*arguments, stdin=json.dumps(item)))
        return applied

    def patch(self, kind: str, name: str, change: Object, namespace: str | None = None, subresource: str = "") -> None:
        """Merge a change into an object. Lists are replaced."""
        part = [f"--subresource={subresource}"] if subresource else []
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps(change), *part, *_in(namespace))

    def delete(self, kind: str, name: str, namespace: str | None = None, *, wait: bool = True) -> None:
        self.kubectl("delete", kind, name, "--ignore-not-found", f"--wait={str(wait).lower()}", *_in(namespace))

    def wait(self, condition: str, *what: str, namespace: str | None = None, within: float = 120) -> None:
        """Wait for what `kubectl wait --for` understands: `condition=Ready`, `delete`, `jsonpath={.status.x}=3`."""
        self.kubectl("wait", f"--for={condition}", *what, f"--timeout={within:g}s", *_in(namespace), within=within + 30)

    @contextmanager
    def namespace(self, name: str = "") -> Iterator[str]:
        """A namespace under restricted pod security, with its service account. It is deleted afterwards."""
        name = name or f"test-{os.getpid()}-{next(_numbers)}"
        self.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": _RESTRICTED}})
        try:
            # Pods are refused until the controllers have made both.
            for made in ("serviceaccount/default", "configmap/kube-root-ca.crt"):
                self.wait("create", made, namespace=name)
            yield name
        finally:
            self.delete("namespace", name, wait=False)

    def account(self, name: str, namespace: str) -> Path:
        """A kubeconfig with the rights of a service account, and no others."""
        token = self.kubectl("create", "token", name, "--duration=1h", *_in(namespace)).strip()
        view = json.loads(self.kubectl("config", "view", "--raw", "-o", "json"))
        ours = view["clusters"][0]["cluster"]
        authority = self._folder / "authority-of-accounts.crt"
        if "certificate-authority" in ours:
            authority = Path(ours["certificate-authority"])
        else:
            authority.write_bytes(base64.b64decode(ours["certificate-authority-data"]))
        path = self._folder / f"account-{namespace}-{name}.kubeconfig"
        return write_kubeconfig(path, ours["server"], authority, {"token": token}, namespace)


def _in(namespace: str | None) -> list[str]:
    return [f"--namespace={namespace}"] if namespace else []


def _run(command: list[str], environment: dict[str, str], stdin: str | None, within: float) -> str:
    done = subprocess.run(
        command,
        env=environment,
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        text=True,
        timeout=within,
    )
    if done.returncode:
        shown = [part for part in command[1:] if not part.startswith(("--kubeconfig", "--cache-dir"))]
        said = f"{done.stdout}{done.stderr}"
        raise Refused(f"{Path(command[0]).name} {' '.join(shown)} ended with {done.returncode}\n{said}")
    return done.stdout


def _helm() -> str:
    found = os.environ.get("HELM_BIN") or shutil.which("helm")
    if not found:
        pytest.fail("there is no helm: set HELM_BIN to the program", pytrace=False)
    return found

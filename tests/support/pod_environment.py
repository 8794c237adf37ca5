"""What a container of a pod finds around it, made on this machine: variables, files, a command.

Paths inside the container become folders of the test, and ports that it listens on become free ports of loopback.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from pathlib import Path

from support.child_processes import free_port
from support.cluster import Cluster, Object

ANNOTATION = "tests.waybill.dev/process"
TESTS = Path(__file__).parent.parent

_BINARIES = Path(sys.executable).parent


class PodEnvironment:
    """A pod's volumes and ports, and its containers' variables."""

    def __init__(self, cluster: Cluster, pod: Object, folder: Path, claims: Path) -> None:
        self._cluster = cluster
        self._pod = pod
        self._namespace: str = pod["metadata"]["namespace"]
        self._folder = folder
        self.ports = {
            port["containerPort"]: free_port()
            for container in pod["spec"]["containers"]
            for port in container.get("ports", ())
        }
        self._volumes = {volume["name"]: self._volume(volume, claims) for volume in pod["spec"].get("volumes", ())}

    def command(self, container: Object) -> list[str]:
        """What runs: the container's command with the programs of this environment."""
        words = [*container.get("command", ()), *container.get("args", ())]
        assert words, f"{container['name']} has no command, and there is no image to ask"
        program = {"python": sys.executable}.get(words[0], str(_BINARIES / words[0]))
        return [program, *(self._here(container, word) for word in words[1:])]

    def variables(self, container: Object) -> dict[str, str]:
        """Exactly what the pod says, and the little that any process of this machine needs."""
        found = {"PATH": os.environ["PATH"], "PYTHONPATH": str(TESTS), "HOME": str(self._folder)}
        for source in container.get("envFrom", ()):
            kind = "secret" if "secretRef" in source else "configmap"
            name = source.get("secretRef", source.get("configMapRef"))["name"]
            found |= self._texts(kind, name)
        for variable in container.get("env", ()):
            value = self._value(variable, found)
            if value is not None:
                found[variable["name"]] = self._port(variable["name"], self._here(container, value))
        if self._pod["spec"].get("automountServiceAccountToken", True):
            account = self._pod["spec"].get("serviceAccountName", "default")
            found["KUBECONFIG"] = str(self._cluster.account(account, self._namespace))
        return found

    def _value(self, variable: Object, before: dict[str, str]) -> str | None:
        if "value" in variable:
            return re.sub(r"\$\(([A-Za-z_0-9]+)\)", lambda found: before.get(found[1], found[0]), variable["value"])
        source = variable.get("valueFrom")
        if source is None:
            return ""
        if "fieldRef" in source:
            field = source["fieldRef"]["fieldPath"]
            known: dict[str, str] = {
                "metadata.name": self._pod["metadata"]["name"],
                "metadata.namespace": self._namespace,
                "metadata.uid": self._pod["metadata"]["uid"],
                "spec.nodeName": self._pod["spec"]["nodeName"],
                "status.podIP": "127.0.0.1",
            }
            return known[field]
        reference = source.get("secretKeyRef") or source["configMapKeyRef"]
        kind = "secret" if "secretKeyRef" in source else "configmap"
        texts = self._texts(kind, reference["name"], optional=reference.get("optional", False))
        if reference["key"] not in texts and reference.get("optional"):
            return None
        return texts[reference["key"]]

    def _texts(self, kind: str, name: str, *, optional: bool = False) -> dict[str, str]:
        item = self._cluster.find(kind, name, self._namespace)
        assert item is not None or optional, f"the pod refers to a {kind} that does not exist: {name}"
        data: dict[str, str] = (item or {}).get("data", {})
        return {key: base64.b64decode(value).decode() for key, value in data.items()} if kind == "secret" else data

    def _volume(self, volume: Object, claims: Path) -> Path:
        place: Path = self._folder / "volumes" / volume["name"]
        if claim := volume.get("persistentVolumeClaim"):
            place = claims / self._namespace / claim["claimName"]
        place.mkdir(parents=True, exist_ok=True)
        source = volume.get("secret") or volume.get("configMap") or {}
        if source:
            kind = "secret" if "secret" in volume else "configmap"
            texts = self._texts(
                kind, source.get("secretName") or source["name"], optional=source.get("optional", False)
            )
            named = {item["key"]: item["path"] for item in source.get("items", ())} or {key: key for key in texts}
            for key, path in named.items():
                (place / path).write_text(texts[key])
        return place

    def _here(self, container: Object, value: str) -> str:
        """A path in the container as a path of this machine."""
        if not value.startswith("/"):
            return value
        for mount in sorted(container.get("volumeMounts", ()), key=lambda mount: -len(mount["mountPath"])):
            path = mount["mountPath"].rstrip("/")
            if value == path or value.startswith(f"{path}/"):
                return str(self._volumes[mount["name"]]) + value.removeprefix(path)
        if value == "/data":  # an empty folder of the image
            (self._folder / "data").mkdir(exist_ok=True)
            return str(self._folder / "data")
        return value

    def _port(self, name: str, value: str) -> str:
        return str(self.ports.get(int(value), value)) if name.endswith("_PORT") and value.isdigit() else value

"""A small API server of Kubernetes for tests: it speaks the protocol, and fails in the ways that the real one does.

It stores objects, counts versions, keeps finalizers, merges patches, and sends watches from any version that it still
remembers. What it does not do is what only a control plane can: validate, default, run controllers. Tests of those are
in `tests/cluster`, against the real programs.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from waybill.cluster.resources import Resource

Object = dict[str, Any]

_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/(?P<version>[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<plural>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>[^/]+))?"
)


@dataclass
class _Change:
    version: int
    collection: str
    type: str
    object: Object


@dataclass
class _Fault:
    method: str
    path: re.Pattern[str]
    status: int
    times: int
    message: str
    headers: dict[str, str] = field(default_factory=dict)


class ClusterServer:
    """Made by `cluster_server()`."""

    def __init__(self) -> None:
        self.version = 100
        self.collections: dict[str, dict[str, Object]] = {}
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        """Every request so far: method, path, query."""
        self.headers: list[dict[str, str]] = []
        """The headers of each."""
        self.written: list[tuple[str, str, Object]] = []
        """Every write that succeeded: method, path, body."""
        self.before_write: Callable[[str, str, Object], None] = lambda _method, _path, _body: None
        """Called before a write is carried out: for somebody else who is faster."""
        self.port = 0
        self._history: list[_Change] = []
        self._forgotten = 0
        self._faults: list[_Fault] = []
        self._applied: dict[tuple[str, str, str, str], Object] = {}
        self._watches: set[asyncio.Event] = set()
        self._changed = asyncio.Condition()
        self._runner: web.AppRunner | None = None

    # What a test does to it

    async def start(self) -> None:
        app = web.Application(client_max_size=4 << 20)
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        assert site._server is not None
        self.port = site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]

    async def stop(self) -> None:
        """Be gone, connections and all; `start` brings it back with its objects."""
        self.cut_watches()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def cut_watches(self) -> None:
        """End every watch in the middle of its chunk."""
        for cut in self._watches:
            cut.set()

    def forget(self) -> None:
        """Compact the history: whoever wants to go on from before gets a 410."""
        self._history.clear()
        self._forgotten = self.version

    def refuse(
        self,
        method: str,
        path: str,
        status: int,
        *,
        times: int = 1,
        message: str = "no",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer the next `times` requests whose path matches with a status."""
        self._faults.append(_Fault(method, re.compile(path), status, times, message, headers or {}))

    def refuse_nothing(self) -> None:
        self._faults.clear()

    async def put(self, resource: Resource, object_: Object, namespace: str = "default") -> Object:
        """Store an object as somebody else would."""
        whole = {"apiVersion": resource.api_version, "kind": resource.kind, **copy.deepcopy(object_)}
        whole["metadata"].setdefault("namespace", namespace)
        known = self.object(resource, whole["metadata"]["name"], namespace)
        if known is not None:
            whole["metadata"] = {**known["metadata"], **whole["metadata"]}
        return await self._store(resource.path(namespace), whole, new=known is None)

    async def remove(self, resource: Resource, name: str, namespace: str = "default") -> None:
        await self._delete(resource.path(namespace), name)

    async def hide(self, resource: Resource, object_: Object, namespace: str = "default") -> None:
        """Change an object so that selectors no longer match it: whoever watches with one sees it deleted."""
        collection = resource.path(namespace)
        before = self.collections[collection][object_["metadata"]["name"]]
        self.version += 1
        object_["metadata"]["resourceVersion"] = str(self.version)
        self.collections[collection][object_["metadata"]["name"]] = object_
        await self._record(
            collection, "DELETED", before | {"metadata": before["metadata"] | {"resourceVersion": str(self.version)}}
        )

    def object(self, resource: Resource, name: str, namespace: str = "default") -> Object | None:
        return self.collections.get(resource.path(namespace), {}).get(name)

    def objects(self, resource: Resource, namespace: str = "default") -> dict[str, Object]:
        return self.collections.get(resource.path(namespace), {})

    def asked(self, method: str, path: str) -> list[dict[str, str]]:
        """The queries of the requests so far whose path is this one."""
        return [query for how, where, query in self.requests if (how, where) == (method, path)]

    @property
    def watches(self) -> int:
        return len(self._watches)

    # The protocol

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        query = dict(request.query)
        self.requests.append((request.method, request.path, query))
        self.headers.append(dict(request.headers))
        for fault in self._faults:
            if fault.times and fault.method == request.method and fault.path.search(request.path):
                fault.times -= 1
                return _status(fault.status, "Refused", fault.message, fault.headers)
        parts = _PATH.fullmatch(request.path)
        if parts is None:
            return _status(404, "NotFound", "the server could not find the requested resource")
        name, sub = parts["name"], parts["subresource"]
        collection = request.path[: parts.end("plural")]
        if request.method == "GET" and name is None:
            if query.get("watch") == "true":
                return await self._watch(request, collection, query)
            return self._list(collection, query)
        body: Object = await request.json() if request.can_read_body else {}
        if request.method != "GET":
            self.before_write(request.method, request.path, body)
        name = name or body["metadata"]["name"]
        known = self.collections.get(collection, {}).get(name)
        if request.method == "POST":
            if known is not None:
                return _status(409, "AlreadyExists", f'{parts["plural"]} "{name}" already exists')
            body["metadata"].setdefault("namespace", parts["namespace"])
            answer = await self._store(collection, body, new=True)
        elif request.method == "PATCH" and "apply" in request.content_type:
            answer = await self._apply(collection, name, sub or "", query["fieldManager"], body, known)
        elif known is None:
            return _status(404, "NotFound", f'{parts["plural"]} "{name}" not found')
        elif request.method == "GET":
            return web.json_response(known)
        elif _is_late(known, body):
            return _status(409, "Conflict", "the object has been modified")
        elif request.method == "PUT":
            answer = await self._store(collection, {**body, "metadata": {**known["metadata"], **body["metadata"]}})
        elif request.method == "PATCH":
            answer = await self._store(collection, _merged(known, body))
        else:
            if (wanted := body.get("preconditions", {}).get("uid")) and wanted != known["metadata"]["uid"]:
                return _status(409, "Conflict", "the UID in the precondition does not match")
            await self._delete(collection, name)
            answer = {"kind": "Status", "status": "Success"}
        self.written.append((request.method, request.path, body))
        return web.json_response(answer)

    def _list(self, collection: str, query: dict[str, str]) -> web.Response:
        found = [one for one in self.collections.get(collection, {}).values() if _matches(one, query)]
        begin = int(query.get("continue", 0))
        end = begin + int(query.get("limit", len(found) or 1))
        metadata = {"resourceVersion": str(self.version)} | ({"continue": str(end)} if end < len(found) else {})
        # Items of a list name neither their kind nor their version.
        items = [{k: v for k, v in one.items() if k not in ("kind", "apiVersion")} for one in found[begin:end]]
        return web.json_response({"kind": "List", "metadata": metadata, "items": items})

    async def _watch(self, request: web.Request, collection: str, query: dict[str, str]) -> web.StreamResponse:
        since = int(query["resourceVersion"])
        if since < self._forgotten:
            return _status(410, "Expired", "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        cut = asyncio.Event()
        self._watches.add(cut)
        try:
            await response.prepare(request)
            while not cut.is_set():
                for change in [one for one in self._history if one.version > since and one.collection == collection]:
                    since = change.version
                    if _matches(change.object, query):
                        line = json.dumps({"type": change.type, "object": change.object})
                        await response.write(line.encode() + b"\n")
                waiting = asyncio.create_task(self._wait_for_change(collection, since))
                cutting = asyncio.create_task(cut.wait())
                await asyncio.wait([waiting, cutting], return_when=asyncio.FIRST_COMPLETED)
                for task in (waiting, cutting):
                    task.cancel()
                    with suppress(asyncio.CancelledError):
                        await task
        except ConnectionResetError:
            return response
        finally:
            self._watches.discard(cut)
        # In the middle of an event, as a server that is killed.
        with suppress(ConnectionResetError):
            await response.write(b'{"type":"MODIFI')
        if request.transport is not None:
            request.transport.abort()
        return response

    async def bookmark(self, resource: Resource, namespace: str = "default") -> None:
        """Tell every watch of these objects how far it is."""
        self.version += 1
        await self._record(resource.path(namespace), "BOOKMARK", {"metadata": {"resourceVersion": str(self.version)}})

    async def _wait_for_change(self, collection: str, since: int) -> None:
        async with self._changed:
            await self._changed.wait_for(
                lambda: any(one.version > since and one.collection == collection for one in self._history)
            )

    async def _record(self, collection: str, type_: str, object_: Object) -> None:
        self._history.append(_Change(self.version, collection, type_, copy.deepcopy(object_)))
        async with self._changed:
            self._changed.notify_all()

    async def _store(self, collection: str, object_: Object, *, new: bool = False) -> Object:
        metadata = object_["metadata"]
        known = None if new else self.collections.get(collection, {}).get(metadata["name"])
        if known is not None and _unversioned(known) == _unversioned(object_):
            return known  # nothing changes: no new version, and nobody is told
        self.version += 1
        if known is None:
            metadata |= {"uid": str(uuid.uuid4()), "generation": 1, "creationTimestamp": _now()}
        elif known.get("spec") != object_.get("spec"):
            metadata["generation"] = known["metadata"].get("generation", 1) + 1
        metadata["resourceVersion"] = str(self.version)
        if metadata.get("deletionTimestamp") and not metadata.get("finalizers"):
            self.collections[collection].pop(metadata["name"], None)
            await self._record(collection, "DELETED", object_)
            return object_
        self.collections.setdefault(collection, {})[metadata["name"]] = object_
        await self._record(collection, "ADDED" if known is None else "MODIFIED", object_)
        return object_

    async def _delete(self, collection: str, name: str) -> None:
        known = self.collections[collection][name]
        if known["metadata"].get("deletionTimestamp"):
            return
        changed = copy.deepcopy(known)
        changed["metadata"]["deletionTimestamp"] = _now()
        await self._store(collection, changed)
        self._applied = {key: value for key, value in self._applied.items() if key[:2] != (collection, name)}

    async def _apply(
        self, collection: str, name: str, sub: str, manager: str, body: Object, known: Object | None
    ) -> Object:
        key = (collection, name, sub, manager)
        before = self._applied.get(key, {})
        self._applied[key] = copy.deepcopy(body)
        whole = _merged(_without(known or {}, before, body), body)
        return await self._store(collection, whole, new=known is None)


def _unversioned(object_: Object) -> Object:
    return {**object_, "metadata": {**object_["metadata"], "resourceVersion": None}}


def _without(whole: Object, before: Object, now: Object) -> Object:
    """`whole` without what a manager applied before and no longer names."""
    left = {}
    for key, value in whole.items():
        if key in before and key not in now:
            continue
        is_part = isinstance(value, dict) and isinstance(before.get(key), dict) and isinstance(now.get(key), dict)
        left[key] = _without(value, before[key], now[key]) if is_part else value
    return left


def _merged(whole: Object, change: Object) -> Object:
    result = copy.deepcopy(whole)
    for key, value in change.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result[key] if isinstance(result.get(key), dict) else {}, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _matches(object_: Object, query: dict[str, str]) -> bool:
    """By labels, `key=value` and `key`; and by name, the only field that everything can be selected by."""
    if set(object_) == {"metadata"}:
        return True  # a bookmark
    labels = object_["metadata"].get("labels") or {}
    for one in filter(None, query.get("labelSelector", "").split(",")):
        key, equals, value = one.partition("=")
        if key not in labels or (equals and labels[key] != value):
            return False
    field, _, name = query.get("fieldSelector", "").partition("=")
    return field != "metadata.name" or object_["metadata"]["name"] == name


def _is_late(known: Object, body: Object) -> bool:
    version = body.get("metadata", {}).get("resourceVersion")
    return version is not None and version != known["metadata"]["resourceVersion"]


def _status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return web.json_response({**body, "message": message}, status=code, headers=headers)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@asynccontextmanager
async def cluster_server(folder: Path) -> AsyncIterator[tuple[ClusterServer, Path]]:
    """A running server, and a kubeconfig that leads to it."""
    server = ClusterServer()
    await server.start()
    kubeconfig = folder / "kubeconfig"
    kubeconfig.write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "test",
                "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{server.port}"}}],
                "users": [{"name": "test", "user": {"token": "a-token-of-the-tests"}}],
                "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            }
        )
    )
    try:
        yield server, kubeconfig
    finally:
        await server.stop()

"""Reads and writes objects of the cluster as plain JSON.

The client's own model classes are left alone: there are hundreds, they cost memory, and they drop fields that are newer
than they are. An object is what the server sent.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlencode

from waybill.cluster.errors import Away, HistoryGone, WatchCut, Withheld, refusal, told
from waybill.cluster.resources import Resource

if TYPE_CHECKING:
    import aiohttp
    from kubernetes.aio.client import ApiClient

Object = dict[str, Any]
"""An object of the cluster, as the server writes it."""

_PAGE = 500
"""Objects in one page of a list, as kubectl asks for them."""
_ANSWER_WITHIN = 30.0
_CONNECT_WITHIN = 10.0
_WATCH_SECONDS = 290
"""After so long the server ends a watch, and we go on with the next; others choose five minutes, too."""
_SILENCE = 120.0
"""Seconds without a byte after which a watch counts as dead. The server sends a bookmark about once a minute, and to
resume costs one request, while a network that died silently would hide every change."""
_LONGEST_EVENT = 16 * 1024 * 1024
"""Bytes of one event of a watch. etcd keeps objects below 2 MB."""


@dataclass(frozen=True, slots=True)
class ObjectList:
    items: list[Object]
    version: str
    """From where a watch goes on."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]
    object: Object

    @property
    def version(self) -> str:
        return str(self.object["metadata"]["resourceVersion"])


class ClusterApi:
    """Made by `cluster_api()`."""

    def __init__(self, client: ApiClient, *, may_write: Callable[[], bool] = lambda: True) -> None:
        self._client = client
        self._may_write = may_write

    def guarded(self, may_write: Callable[[], bool]) -> ClusterApi:
        """The same API, which writes only while `may_write` says so, and raises `Withheld` otherwise."""
        return ClusterApi(self._client, may_write=may_write)

    @property
    def may_write(self) -> bool:
        return self._may_write()

    # Read

    async def get(self, resource: Resource, name: str, namespace: str | None) -> Object:
        return await self._ask("GET", resource.path(namespace, name))

    async def list(
        self, resource: Resource, namespace: str | None, *, labels: str | None = None, fields: str | None = None
    ) -> ObjectList:
        """Every object that the selectors match, read page by page."""
        query = _given({"labelSelector": labels, "fieldSelector": fields})
        try:
            return await self._pages(resource, namespace, {**query, "limit": str(_PAGE)})
        except HistoryGone:  # the pages took longer than the server remembers
            return await self._pages(resource, namespace, query)

    async def _pages(self, resource: Resource, namespace: str | None, query: dict[str, str]) -> ObjectList:
        items: list[Object] = []
        while True:
            page = await self._ask("GET", resource.path(namespace), query=query)
            # The server names the kind once for the whole list.
            items += [{"apiVersion": resource.api_version, "kind": resource.kind, **one} for one in page["items"] or ()]
            further = page["metadata"].get("continue")
            if not further:
                return ObjectList(items, page["metadata"]["resourceVersion"])
            query = {**query, "continue": further}

    async def watch(
        self,
        resource: Resource,
        namespace: str | None,
        *,
        since: str,
        labels: str | None = None,
        fields: str | None = None,
    ) -> AsyncGenerator[WatchEvent, None]:
        """What happens after `since`, until the server ends it, or the network does (`WatchCut`).

        `HistoryGone` if `since` is too old.

        `Informer` goes on where this ends.
        """
        query = {
            **_given({"labelSelector": labels, "fieldSelector": fields}),
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(_WATCH_SECONDS),
        }
        response = await self._send("GET", resource.path(namespace), query=query, silence=_SILENCE)
        try:
            async for line in _lines(response):
                event = json.loads(line)
                if event["type"] == "ERROR":
                    raise told(event["object"])
                yield WatchEvent(event["type"], event["object"])
        except (ValueError, KeyError) as error:
            raise WatchCut(f"the API server sent an event that cannot be read: {error}") from error
        finally:
            response.close()

    # Write

    async def apply(
        self,
        resource: Resource,
        wanted: Object,
        *,
        manager: str,
        subresource: str | None = None,
        force: bool = True,
    ) -> Object:
        """Server-side apply: the fields of `wanted` become so, and those that `manager` no longer names are removed.

        With `force` it takes fields over that somebody else has set, as a controller must.
        """
        metadata = wanted["metadata"]
        return await self._ask(
            "PATCH",
            resource.path(metadata.get("namespace"), metadata["name"], subresource),
            query={"fieldManager": manager, "force": "true" if force else "false"},
            body={"apiVersion": resource.api_version, "kind": resource.kind, **wanted},
            content_type="application/apply-patch+yaml",  # JSON is YAML
        )

    async def patch(
        self, resource: Resource, name: str, namespace: str | None, change: Object, *, subresource: str | None = None
    ) -> Object:
        """Merge a change into an object. With a `metadata.resourceVersion` in it, being late is `ChangedMeanwhile`."""
        return await self._ask(
            "PATCH",
            resource.path(namespace, name, subresource),
            body=change,
            content_type="application/merge-patch+json",
        )

    async def create(self, resource: Resource, new: Object, namespace: str | None) -> Object:
        """`AlreadyThere` if it is."""
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **new}
        return await self._ask("POST", resource.path(namespace), body=body)

    async def replace(self, resource: Resource, whole: Object, namespace: str | None) -> Object:
        """Write an object back as a whole. `ChangedMeanwhile` if somebody changed it since it was read."""
        return await self._ask("PUT", resource.path(namespace, whole["metadata"]["name"]), body=whole)

    async def delete(
        self, resource: Resource, name: str, namespace: str | None, *, uid: str | None = None, foreground: bool = False
    ) -> None:
        """Delete an object, and what it owns after it (or, with `foreground`, before it).

        With `uid`, a `ChangedMeanwhile` if it is another object of the same name by now.
        """
        options: Object = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        await self._ask("DELETE", resource.path(namespace, name), body=options)

    # The wire

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
    ) -> Object:
        import aiohttp

        response = await self._send(method, path, query=query, body=body, content_type=content_type)
        try:
            answer = json.loads(await response.read())
        except (aiohttp.ClientError, TimeoutError) as error:
            raise Away(f"the API server broke off its answer: {_said(error)}") from error
        except ValueError as error:
            raise Away(f"the API server's answer is not JSON: {error}") from error
        finally:
            response.release()
        if not isinstance(answer, dict):
            raise Away("the API server's answer is not an object")
        return answer

    async def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Object | None = None,
        content_type: str = "application/json",
        silence: float | None = None,
    ) -> aiohttp.ClientResponse:
        """The response to a request, if it is one of the 2xx. With `silence` it may take for ever to be read."""
        import aiohttp
        from kubernetes.aio.config import ConfigException

        if method != "GET" and not self._may_write():
            raise Withheld("somebody else may be writing by now")
        limit = aiohttp.ClientTimeout(
            total=None if silence else _ANSWER_WITHIN, sock_connect=_CONNECT_WITHIN, sock_read=silence
        )
        try:
            _, url, headers, _, _ = await self._client.param_serialize(
                method,
                path + (f"?{urlencode(query)}" if query else ""),
                header_params={"Accept": "application/json", "Content-Type": content_type},
                auth_settings=["BearerToken"],
            )
            raw = await self._client.rest_client.request(  # type: ignore[no-untyped-call]
                method, url, headers=headers, body=body, _request_timeout=limit
            )
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise Away(f"the API server does not answer: {_said(error)}") from error
        except ConfigException as error:  # the token's file is just being replaced
            raise Away(f"the way to the API server cannot be read: {error}") from error
        response: aiohttp.ClientResponse = raw.response
        if response.status // 100 == 2:
            return response
        try:
            said = await response.content.read(1 << 20)
        except (aiohttp.ClientError, TimeoutError):
            said = b""
        finally:
            response.close()
        raise refusal(response.status, said, response.headers)


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    """The complete lines of a response. `WatchCut` if the network ends it."""
    import aiohttp

    rest = bytearray()
    try:
        async for chunk in response.content.iter_any():
            rest += chunk
            if b"\n" in chunk:
                *lines, tail = bytes(rest).split(b"\n")
                for line in lines:
                    if line.strip():
                        yield line
                rest = bytearray(tail)
            if len(rest) > _LONGEST_EVENT:
                raise WatchCut("the API server sends an event without an end")
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise WatchCut(f"the watch was cut: {_said(error)}") from error


def _given(query: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in query.items() if value}


def _said(error: BaseException) -> str:
    return str(error) or type(error).__name__

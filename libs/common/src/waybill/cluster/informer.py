"""Keeps a copy of some of the cluster's objects: lists them once, then watches, and goes on after every interruption.

A watch that ends is resumed from the last version it has seen; bookmarks keep that version young. If the server has
forgotten it (410), everything is listed again and compared, so that no change is ever missed, only late.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Never

import structlog

from waybill.cluster.api import ClusterApi, Object, ObjectList
from waybill.cluster.backoff import Backoff
from waybill.cluster.errors import ClusterError, HistoryGone, NotAllowed, WatchCut
from waybill.cluster.resources import Resource

log: structlog.stdlib.BoundLogger = structlog.get_logger()

Changed = Callable[[Object | None, Object | None], None]
"""Called with an object before and after a change; None before it is there, and after it is gone."""

_SHORT = 1.0
"""Seconds. A watch that ends sooner did not end because its time was over."""
_SAID_AGAIN = 300.0
"""Seconds after which a trouble that stays is logged again."""


def without_managers(object_: Object) -> Object:
    """The object without what only server-side apply reads, which is often half of it."""
    object_["metadata"].pop("managedFields", None)
    return object_


class Informer:
    """The objects of one kind in one namespace that a selector matches."""

    def __init__(
        self,
        api: ClusterApi,
        resource: Resource,
        namespace: str,
        *,
        labels: str | None = None,
        fields: str | None = None,
        keep: Callable[[Object], Object] = without_managers,
        backoff: Backoff | None = None,
    ) -> None:
        """`keep` makes of an object what is kept of it."""
        self._api = api
        self._resource = resource
        self._namespace = namespace
        self._labels, self._fields = labels, fields
        self._keep = keep
        self._listeners: list[Changed] = []
        self._backoff = backoff or Backoff()
        self._listed = asyncio.Event()
        self._version: str | None = None
        self._said: tuple[str, float] = ("", 0.0)
        self.objects: dict[str, Object] = {}
        """By name, as far as we know. Not to be changed."""
        self.trouble: ClusterError | None = None
        """Why it is not up to date; None while it is."""

    def on_change(self, listener: Changed) -> None:
        """Have changes told. A listener is called in the loop, and must be quick."""
        self._listeners.append(listener)

    def off_change(self, listener: Changed) -> None:
        self._listeners.remove(listener)

    @property
    def listed(self) -> bool:
        """Whether everything has been listed once."""
        return self._listed.is_set()

    async def wait_until_listed(self) -> None:
        await self._listed.wait()

    async def run(self) -> Never:
        """List and watch, for ever."""
        while True:
            try:
                if self._version is None:
                    await self._list()
                await self._watch()
            except HistoryGone:
                self._version = None
                await asyncio.sleep(self._backoff.next())
            except ClusterError as error:
                self._say(error)
                if isinstance(error, NotAllowed):
                    self._version = None  # what we were not shown meanwhile is unknown
                await asyncio.sleep(self._backoff.next(error.retry_after))

    async def _list(self) -> None:
        listing = await self._api.list(self._resource, self._namespace, labels=self._labels, fields=self._fields)
        self._take(listing)
        self._version = listing.version
        self._well()

    async def _watch(self) -> None:
        """Follow one watch to its end."""
        began = asyncio.get_running_loop().time()
        events = self._api.watch(
            self._resource, self._namespace, since=self._version or "", labels=self._labels, fields=self._fields
        )
        try:
            async with contextlib.aclosing(events):
                async for event in events:
                    if event.type != "BOOKMARK":
                        self._see(event.object, gone=event.type == "DELETED")
                    self._version = event.version
                    self._well()
        except WatchCut as cut:
            # Mostly a server that restarts. Nothing is lost, so nobody is told; the next watch may have more to say.
            log.debug("watch_cut", of=self._resource.plural, error=cut.message)
        # A server that ends every watch at once must not be asked in a tight loop.
        if asyncio.get_running_loop().time() - began < _SHORT:
            await asyncio.sleep(self._backoff.next())

    def _take(self, listing: ObjectList) -> None:
        """Make the copy what the listing says, and tell of what is different."""
        gone = set(self.objects)
        for one in listing.items:
            gone.discard(one["metadata"]["name"])
            self._see(one, gone=False)
        for name in gone:
            self._changed(self.objects.pop(name), None)
        self._listed.set()

    def _see(self, object_: Object, *, gone: bool) -> None:
        name = object_["metadata"]["name"]
        before = self.objects.get(name)
        if gone:
            self.objects.pop(name, None)
            # The last state of an object tells more than the one we knew.
            self._changed(self._keep(object_), None)
            return
        if before is not None and _version(before) == _version(object_):
            return
        if before is not None and before["metadata"].get("uid") != object_["metadata"].get("uid"):
            self._changed(before, None)  # it was deleted and made again while nobody watched
            before = None
        after = self.objects[name] = self._keep(object_)
        self._changed(before, after)

    def _changed(self, before: Object | None, after: Object | None) -> None:
        for listener in list(self._listeners):
            listener(before, after)

    def _well(self) -> None:
        if self.trouble is not None:
            log.info("cluster_answers_again", of=self._resource.plural)
        self.trouble = None
        self._said = ("", 0.0)
        self._backoff.reset()

    def _say(self, error: ClusterError) -> None:
        """Tell of a trouble once, and now and then again while it stays."""
        self.trouble = error
        now = asyncio.get_running_loop().time()
        what, at = self._said
        if what != type(error).__name__ or now - at > _SAID_AGAIN:
            self._said = (type(error).__name__, now)
            log.warning("cluster_not_watched", of=self._resource.plural, error=error.message)


def _version(object_: Object) -> object:
    return object_["metadata"].get("resourceVersion")

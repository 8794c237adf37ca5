"""One operator at a time writes: the one that holds the Lease.

Others watch the Lease, and take it when its holder has let go or has not renewed it for its duration, measured by their
own clock: clocks of nodes may differ. A Lease cannot fence writes. So the holder stops writing well before others may
begin, by its own clock, too, and all that it writes is idempotent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Never

import structlog

from waybill.cluster import AlreadyThere, ChangedMeanwhile, ClusterApi, ClusterError, NoSuchObject, Object
from waybill.cluster.resources import LEASES
from waybill.telemetry.metrics import OPERATOR_LEADER

log: structlog.stdlib.BoundLogger = structlog.get_logger()

DURATION = 15.0
"""Seconds that a Lease lasts without being renewed."""
_RENEWALS = 5
"""How often it is renewed in that time."""
_SAFE = 2 / 3
"""The part of it in which the holder may write. The rest is for writes that are on their way."""
_RELEASE_WITHIN = 3.0

Lead = Callable[[], Awaitable[Never]]
"""What the leader does, until it is cancelled."""


class Leadership:
    def __init__(
        self,
        api: ClusterApi,
        namespace: str,
        name: str,
        holder: str,
        *,
        owner: Object | None = None,
        duration: float = DURATION,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`owner` is what the Lease disappears with: a reference to the operator's Deployment."""
        self._api = api
        self._namespace = namespace
        self._name = name
        self._owner = owner
        self._duration = duration
        self._renew_every = duration / _RENEWALS
        self._clock = clock
        self.identity = f"{holder}_{uuid.uuid4()}"
        """Not the pod's name alone: a container that was restarted is another holder."""
        self._safe_until = float("-inf")
        self._seen: tuple[str, float] = ("", 0.0)
        self._trouble = ""

    @property
    def held(self) -> bool:
        """Whether we hold the Lease, and nobody else can have taken it."""
        return self._clock() < self._safe_until

    async def run(self, lead: Lead) -> Never:
        """Try to hold the Lease, for ever. While we do, have `lead` run."""
        while True:
            if await self._try():
                await self._lead(lead)
            await asyncio.sleep(self._renew_every)

    async def _lead(self, lead: Lead) -> None:
        log.info("leading", lease=self._name)
        OPERATOR_LEADER.set(1)
        leading = asyncio.ensure_future(lead())
        renewing = asyncio.create_task(self._renew())
        try:
            await asyncio.wait([leading, renewing], return_when=asyncio.FIRST_COMPLETED)
            if leading.done():
                leading.result()  # raises: it never returns
        finally:
            OPERATOR_LEADER.set(0)
            for task in (leading, renewing):
                task.cancel()
            await asyncio.gather(leading, renewing, return_exceptions=True)
            log.info("no_longer_leading", lease=self._name)
            await self._release()

    async def _renew(self) -> None:
        """Renew the Lease, and return when it is lost."""
        while (left := self._safe_until - self._clock()) > 0:
            await asyncio.sleep(min(self._renew_every, left / 3))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(self._safe_until - self._clock(), 0)):
                    await self._try()

    async def _try(self) -> bool:
        """Take the Lease or renew it, if we may."""
        began = self._clock()
        try:
            ours = await self._take()
        except ChangedMeanwhile:
            return False  # somebody was faster; perhaps an earlier request of ours, whose answer never came
        except ClusterError as error:
            if type(error).__name__ != self._trouble:
                log.warning("lease_not_read", lease=self._name, error=error.message)
            self._trouble = type(error).__name__
            return False
        self._trouble = ""
        # From before the request: others count from when it arrived.
        self._safe_until = began + self._duration * _SAFE if ours else float("-inf")
        return ours

    async def _take(self) -> bool:
        try:
            lease = await self._api.get(LEASES, self._name, self._namespace)
        except NoSuchObject:
            with contextlib.suppress(AlreadyThere):
                await self._api.create(LEASES, {"metadata": self._metadata(), "spec": self._spec({})}, self._namespace)
                return True
            return False
        spec = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder != self.identity and holder and not self._has_run_out(lease):
            return False
        # Whoever changed it since we read it wins.
        await self._api.replace(LEASES, {**lease, "spec": self._spec(spec)}, self._namespace)
        return True

    def _has_run_out(self, lease: Object) -> bool:
        version, seen_at = self._seen
        if lease["metadata"]["resourceVersion"] != version:
            self._seen = (lease["metadata"]["resourceVersion"], self._clock())
            return False
        lasts = float(lease["spec"].get("leaseDurationSeconds") or self._duration)
        return self._clock() > seen_at + min(lasts, 10 * self._duration)

    async def _release(self) -> None:
        """Let go, so that the next one need not wait. If somebody else has it, leave it alone."""
        self._safe_until = float("-inf")
        try:
            async with asyncio.timeout(_RELEASE_WITHIN):
                lease = await self._api.get(LEASES, self._name, self._namespace)
                if lease["spec"].get("holderIdentity") != self.identity:
                    return
                spec = {**lease["spec"], "holderIdentity": "", "renewTime": _now()}
                await self._api.replace(LEASES, {**lease, "spec": spec}, self._namespace)
        except (ClusterError, TimeoutError) as error:
            log.info("lease_not_released", lease=self._name, error=str(error))  # it runs out by itself

    def _metadata(self) -> Object:
        owners = {"ownerReferences": [self._owner]} if self._owner is not None else {}
        return {"name": self._name, "namespace": self._namespace, **owners}

    def _spec(self, before: Object) -> Object:
        now = _now()
        ours = before.get("holderIdentity") == self.identity
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(round(self._duration), 1),
            "renewTime": now,
            "acquireTime": before.get("acquireTime") if ours else now,
            "leaseTransitions": int(before.get("leaseTransitions") or 0) + (0 if ours or not before else 1),
        }


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

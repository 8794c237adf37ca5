"""A document on its way from storage into a request. It is counted, hashed and timed, so that the right side is blamed.

The gateway sees only that a document comes slowly, stops or ends too early. This module knows whether storage did that.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import AsyncIterator

from waybill.errors import IoFailure
from waybill.messages import msg

_SLOW = 5.0
"""Storage may be to blame after so many seconds of waiting. The gateway waits as long before it measures the pace."""


class Source:
    """A stored document, with the size and hash that the upload recorded. It can be read once."""

    def __init__(
        self, chunks: AsyncIterator[bytes], size: int, sha256: str | None = None, *, slow: float = _SLOW
    ) -> None:
        self.size = size
        self._chunks = chunks
        self._sha256 = sha256
        self._slow = slow
        self._started: float | None = None
        self._asked: float | None = None
        self._waited = 0.0

    async def read(self) -> AsyncIterator[bytes]:
        """The document's chunks. Raises IoFailure if they are not what was uploaded."""
        digest = hashlib.sha256()
        left = self.size
        self._started = time.monotonic()
        while (chunk := await self._next()) is not None:
            left -= len(chunk)
            if left < 0:
                raise IoFailure(msg("gateway_call.document_too_long"), detail={"bytes": self.size})
            digest.update(chunk)
            yield chunk
        if left:
            raise IoFailure(
                msg("gateway_call.document_cut_off"),
                detail={"bytes": self.size, "missing": left},
            )
        if self._sha256 is not None and digest.hexdigest() != self._sha256:
            raise IoFailure(msg("gateway_call.document_changed"), detail={"sha256": digest.hexdigest()})

    @property
    def was_slow(self) -> bool:
        """Whether most of the time since the first chunk was requested was spent waiting for storage."""
        if self._started is None:
            return False
        now = time.monotonic()
        waited = self._waited + (0.0 if self._asked is None else now - self._asked)
        return waited >= self._slow and waited * 2 > now - self._started

    async def _next(self) -> bytes | None:
        self._asked = time.monotonic()
        chunk = await anext(self._chunks, None)
        self._waited += time.monotonic() - self._asked
        self._asked = None
        return chunk

"""Why a call to the gateway broke: it is away, it is slow, or the storage that the document comes from is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from waybill.errors import GatewayTimedOut, GatewayUnavailable, GatewayUnreachable, StorageFailed
from waybill.gateway_client.source import Source
from waybill.messages import msg


@contextmanager
def named_failures(source: Source, seconds: float) -> Iterator[None]:
    """Turn what breaks a call that sends `source` into an error of the taxonomy. `seconds` is its time limit."""
    try:
        yield
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise GatewayUnreachable(msg("gateway_call.unreachable")) from error
    except (httpx.TimeoutException, TimeoutError) as error:
        if source.was_slow:
            raise slow_storage() from error
        raise GatewayTimedOut(msg("gateway_call.no_answer", seconds=f"{seconds:g}")) from error
    except httpx.TransportError as error:
        if source.was_slow:  # the gateway hangs up on clients that keep it waiting
            raise slow_storage() from error
        raise GatewayUnavailable(msg("gateway_call.connection_lost")) from error


def slow_storage() -> StorageFailed:
    return StorageFailed(msg("gateway_call.slow_storage"))

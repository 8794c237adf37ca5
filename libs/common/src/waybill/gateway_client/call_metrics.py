"""Measures calls to the gateway, as a worker sees them."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from waybill.failures import classify
from waybill.telemetry.metrics import GATEWAY_CALL

P = ParamSpec("P")
T = TypeVar("T")


def measured(call: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Observe how long each call takes, by outcome: `ok`, `cancelled`, or the code of its error."""

    @functools.wraps(call)
    async def wrapped(*arguments: P.args, **options: P.kwargs) -> T:
        began, outcome = time.perf_counter(), "ok"
        try:
            return await call(*arguments, **options)
        except asyncio.CancelledError:
            outcome = "cancelled"
            raise
        except Exception as error:
            outcome = classify(error).code.value
            raise
        finally:
            GATEWAY_CALL.labels(outcome).observe(time.perf_counter() - began)

    return wrapped

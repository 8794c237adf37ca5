"""A pool of parsers: processes that may die without harming each other or the service.

The standard library's pool breaks as a whole when one of its processes dies, and it sets no limits.
"""

from waybill_gateway.pool.faults import (
    Broken,
    Crashed,
    Killed,
    OutOfSpace,
    PoolError,
    TookTooLong,
    TooMuchMemory,
    Unavailable,
)
from waybill_gateway.pool.parser import Blueprint
from waybill_gateway.pool.pool import Pool

__all__ = [
    "Blueprint",
    "Broken",
    "Crashed",
    "Killed",
    "OutOfSpace",
    "Pool",
    "PoolError",
    "TooMuchMemory",
    "TookTooLong",
    "Unavailable",
]

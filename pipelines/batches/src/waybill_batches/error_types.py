"""The type of an error, in the words of the product's first notes: what somebody can do about it.

It is derived from the one taxonomy (`waybill.errors`), never stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from waybill.errors import Code


class ErrorType(StrEnum):
    RETRYABLE = "RETRYABLE"
    """Something of ours was away; the same file may work next time."""
    PERMANENT = "PERMANENT"
    """The file cannot be worked as it is."""
    TIMEOUT = "TIMEOUT"
    RATE_LIMIT = "RATE_LIMIT"
    PARSE_ERROR = "PARSE_ERROR"
    """The file is damaged, or is not what it claims to be."""
    LLM_ERROR = "LLM_ERROR"
    UNKNOWN = "UNKNOWN"


_TYPES: Mapping[Code, ErrorType] = {
    Code.GW_5XX: ErrorType.RETRYABLE,
    Code.IO_ERROR: ErrorType.RETRYABLE,
    Code.DB_UNAVAILABLE: ErrorType.RETRYABLE,
    Code.WORKER_CRASHED: ErrorType.RETRYABLE,
    Code.GW_TIMEOUT: ErrorType.TIMEOUT,
    Code.TIMEOUT: ErrorType.TIMEOUT,
    Code.RATE_LIMITED: ErrorType.RATE_LIMIT,
    Code.PARSE_ERROR: ErrorType.PARSE_ERROR,
    Code.GW_4XX: ErrorType.PARSE_ERROR,
    Code.LLM_ERROR: ErrorType.LLM_ERROR,
    Code.UNKNOWN: ErrorType.UNKNOWN,
}


def error_type(code: str) -> ErrorType:
    """The type of a code. One that a newer release made is unknown here."""
    try:
        return _TYPES.get(Code(code), ErrorType.PERMANENT)
    except ValueError:
        return ErrorType.UNKNOWN

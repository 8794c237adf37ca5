"""The amounts in a record, for whoever adds up many documents."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_AMOUNT = re.compile(r"-?[0-9]{1,20}\.[0-9]{1,10}", re.ASCII)
_MOST = 50
_LONGEST_CURRENCY = 8


def amounts_of(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The decimals among a document's own fields (not those of its lines), and its currency; None if there are none.

    Records write every decimal with a point, and numbers that only name something without one.
    """
    data = record.get("data")
    if not isinstance(data, dict):
        return None
    values = {
        name: value for name, value in data.items() if isinstance(value, str) and _AMOUNT.fullmatch(value) is not None
    }
    currency = data.get("currency")
    known = isinstance(currency, str) and 0 < len(currency) <= _LONGEST_CURRENCY
    named = dict(list(values.items())[:_MOST])
    return {"values": named, "currency": currency if known else None} if named else None

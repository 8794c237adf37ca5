"""A sentence before anybody has read it: its key in the catalogues, and what fills its holes."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class BadMessage(UserWarning):
    """A message names a key that no catalogue has, or lacks one of the key's parameters.

    It is a warning, and the tests turn warnings into errors. In production whoever raised the message is in trouble
    already, and must not lose that error to a second one.
    """


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence in no language. `str()` says it in English."""

    key: str
    """`table.name` in the catalogues."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """What fills the holes: texts, numbers, times, lists of texts, or an error with its code, message, key and params.
    Jobs and problem documents store them as JSON."""

    def __str__(self) -> str:
        from waybill.messages.language import languages  # it renders messages, so it imports this module

        said = languages()["en"].tell(self)
        if said is None:
            warnings.warn(f"No message {self.key!r} with {sorted(self.params)}", BadMessage, stacklevel=2)
            return f"{self.key} {dict(self.params)}" if self.params else self.key
        return said


def msg(key: str, /, **params: Any) -> Message:
    """The message with this key. A test finds every call and compares its parameters with the catalogues."""
    return Message(key, params)

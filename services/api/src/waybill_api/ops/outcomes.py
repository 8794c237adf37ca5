"""What an action did, carried in the address that its form leads to: so that a reload repeats nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

from waybill.web.languages import Language

_DONE = frozenset(
    {"paused", "resumed", "was_open", "tripped", "reset", "was_closed", "retried", "cancelled", "stopping", "nothing"}
)
_LONGEST = 63


@dataclass(frozen=True, slots=True)
class Outcome:
    did: str
    name: str = ""
    """The queue or the dependency."""
    jobs: int = 0
    left: int = 0
    """Jobs that could not be changed."""
    more: bool = False
    """Time was up before all were done."""

    @classmethod
    def read(cls, query: Mapping[str, str]) -> Outcome | None:
        """None if the address tells of nothing, or of something that we never said."""
        if query.get("did") not in _DONE:
            return None
        return cls(
            query["did"],
            query.get("name", "")[:_LONGEST],
            _number(query.get("jobs", "")),
            _number(query.get("left", "")),
            query.get("more") == "1",
        )

    def address(self, path: str = "/ops") -> str:
        facts = {"did": self.did, "name": self.name, "jobs": self.jobs, "left": self.left, "more": int(self.more)}
        return f"{path}?{urlencode({name: value for name, value in facts.items() if value})}"

    def says(self, language: Language) -> str:
        parts = [language.say(f"ops.did.{self.did}", name=self.name, count=self.jobs)]
        if self.left:
            parts.append(language.say("ops.did.left", count=self.left))
        if self.more:
            parts.append(language.say("ops.did.more"))
        return " ".join(parts)


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0

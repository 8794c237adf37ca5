"""Reads a Dockerfile as far as tests look at it: its stages, and their instructions with continued lines joined."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """One `FROM … AS name` and what follows it."""

    name: str
    parent: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, keyword: str) -> list[str]:
        return [text for each, text in self.instructions if each == keyword]

    def only(self, keyword: str) -> str:
        (text,) = self.all(keyword)
        return text

    def command(self, keyword: str) -> list[str]:
        """An instruction in the form that needs no shell. Fails for the other form."""
        arguments: list[str] = json.loads(self.only(keyword))
        return arguments

    def variables(self) -> dict[str, str]:
        """What ENV sets."""
        return dict(pair for text in self.all("ENV") for pair in re.findall(r"([A-Z0-9_]+)=(\S+)", text))

    def labels(self) -> dict[str, str]:
        return dict(pair for text in self.all("LABEL") for pair in re.findall(r'(\S+)="([^"]*)"', text))


def read(path: Path) -> dict[str, Stage]:
    text = re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    stages: dict[str, Stage] = {}
    current: Stage | None = None
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        if not line.strip():
            continue
        keyword, _, rest = line.strip().partition(" ")
        if keyword == "FROM":
            parent, name = re.fullmatch(r"(\S+) AS (\S+)", rest).groups()  # type: ignore[union-attr]
            current = stages[name] = Stage(name, parent)
        elif current is not None:
            current.instructions.append((keyword, rest))
    return stages

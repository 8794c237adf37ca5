"""Finds the line and column of a path like `fields.vat.label` in a JSON text.

Python's JSON reader keeps no positions, but people with an editor need them. This module only reads the structure and
assumes that the text is valid JSON.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[{}\[\]:,]|[^\s{}\[\]:,"]+')
_STEP = re.compile(r"[^.\[\]@]+")
_SYNTAX = re.compile(r": line (\d+) column (\d+) \(char \d+\)")
_MOST_CHARACTERS = 1_000_000


@dataclass(slots=True)
class _Node:
    start: int
    text: str = ""
    named: dict[str, _Node] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    """The position of each name."""
    items: list[_Node] = field(default_factory=list)


def place_of(text: str, where: str | None) -> tuple[int, int]:
    """Line and column, from 1, of the last step of `where` that exists; (0, 0) if not even the first does."""
    if not where or len(text) > _MOST_CHARACTERS:
        return 0, 0
    try:
        root = _JsonReader(text).value()
    except (IndexError, RecursionError):
        return 0, 0
    start = _follow(root, _STEP.findall(where))
    if start is None:
        return 0, 0
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def place_in_message(message: str) -> tuple[int, int]:
    """The position in an error message of Python's JSON reader."""
    found = _SYNTAX.search(message)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def without_place(message: str) -> str:
    """The message without the position."""
    return _SYNTAX.sub("", message)


def _follow(node: _Node, steps: list[str]) -> int | None:
    start: int | None = None
    for step in steps:
        if step in node.named:
            start, node = node.keys[step], node.named[step]
            continue
        inner = _element(node, step)
        if inner is not None:
            start, node = inner.start, inner
        elif step.isdigit() and int(step) < len(node.items):
            node = node.items[int(step)]
            start = node.start
        elif step in node.named.get("attributes", _Node(0)).named:
            start = node.named["attributes"].keys[step]
            break
        else:
            break
    return start


def _element(node: _Node, name: str) -> _Node | None:
    """An XML element by its name. Faults call it `xml.Invoice.Lines`; in the file it is below `root` and `children`."""
    root = node.named.get("root")
    children = node.named.get("children")
    for each in (*([root] if root else []), *(children.items if children else [])):
        if each.named.get("name", _Node(0)).text == f'"{name}"':
            return each
    return None


class _JsonReader:
    def __init__(self, text: str) -> None:
        self._tokens = [(found.start(), found.group()) for found in _TOKEN.finditer(text)]
        self._at = 0

    def value(self) -> _Node:
        start, sign = self._next()
        node = _Node(start, sign)
        if sign == "{":
            while self._peek() != "}":
                begin, name = self._next()
                self._next()  # the colon
                plain = name.strip('"')
                node.keys[plain] = begin
                node.named[plain] = self.value()
                if self._peek() == ",":
                    self._next()
            self._next()
        elif sign == "[":
            while self._peek() != "]":
                node.items.append(self.value())
                if self._peek() == ",":
                    self._next()
            self._next()
        return node

    def _next(self) -> tuple[int, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _peek(self) -> str:
        return self._tokens[self._at][1]

"""A sentence for a person before it is put into words: a key of the catalogues, and the parameters of the sentence.

Findings and faults are made with a `DocumentMessage` where they arise. The words are chosen at the edge, in the
reader's language, from `en.toml` or `id.toml`. The platform has a `Message` of its own, which this library may not
import and which cannot do what findings need: a message within a message, and a value in the document's own spelling.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from waybill_documents.messages.sentences import Titles, name_as_words, sentence


class Shown(NamedTuple):
    """A value in two spellings: exactly, for programs, and as the document prints it, for sentences."""

    exact: str | int | bool | None
    text: str


class DocumentMessage:
    """A key and its parameters. Parameters are plain JSON: amounts are exact strings, and a parameter can be a message.

    Values that a sentence shows in the document's own spelling are given as `Shown`: the exact value is then the
    parameter, and the parameter `shown` has the spellings by name. The parameter `messages` has the mapping's own
    words by language; they are used instead of the catalogue.
    """

    __slots__ = ("_stored", "key", "params")

    def __init__(self, key: str, /, **params: Any) -> None:
        self.key: str | None = key
        self.params: dict[str, Any] = {name: _plain(value) for name, value in params.items() if value is not None}
        spelled = {name: value.text for name, value in params.items() if isinstance(value, Shown)}
        if spelled:
            self.params["shown"] = spelled
        self._stored: str | None = None

    @classmethod
    def stored(cls, english: str, key: str | None, params: dict[str, Any]) -> DocumentMessage:
        """A message from a record. Records of release 0.1.0 have no key; they show the English sentence they have."""
        message = cls("")
        message.key, message.params, message._stored = key, params, english
        return message

    @property
    def english(self) -> str:
        """The sentence in English; of a message from a record, the one that was stored with it."""
        return self._stored if self._stored is not None else self.in_language("en")

    def in_language(self, language: str, titles: Titles = name_as_words) -> str:
        """The sentence in a language. What the language cannot say is said in English."""
        own = self.params.get("messages")
        if isinstance(own, Mapping) and isinstance(own.get(language), str):
            return str(own[language])
        said = sentence(self.key, self.params, language, titles) if self.key else None
        if said is not None:
            return said
        return self._stored if self._stored is not None else sentence(self.key or "", self.params, "en") or ""

    def adding(self, **params: Any) -> DocumentMessage:
        """The same message with further parameters."""
        made = DocumentMessage(self.key or "", **params)
        shown = {**self.params.get("shown", {}), **made.params.get("shown", {})}
        made.params = {**self.params, **made.params, **({"shown": shown} if shown else {})}
        made._stored = self._stored
        return made

    def without(self, *names: str) -> DocumentMessage:
        """The same message without some parameters."""
        made = self.adding()
        made.params = {name: value for name, value in self.params.items() if name not in names}
        return made

    def to_json(self) -> dict[str, Any]:
        """The message as a parameter of another one."""
        if self.key is None:
            return {"text": self.english}
        return {"key": self.key, "params": self.params} if self.params else {"key": self.key}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DocumentMessage) and (self.key, self.params) == (other.key, other.params)

    def __hash__(self) -> int:
        return hash(self.key)

    def __str__(self) -> str:
        return self.english

    def __repr__(self) -> str:
        return f"DocumentMessage({self.key!r}, {self.params!r})"


class Mistake(ValueError):
    """A mistake of the person who wrote a mapping. A `ValueError`, so that pydantic reports it with its place."""

    def __init__(self, says: DocumentMessage) -> None:
        super().__init__(says.english)
        self.says = says


def _plain(value: Any) -> Any:
    if isinstance(value, Shown):
        return value.exact
    if isinstance(value, DocumentMessage):
        return value.to_json()
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value

"""One language: its messages, and how it writes numbers, sizes and times. `words.js` does the same in a browser."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Protocol

from waybill.messages.catalogue import TIME, Catalogue, Template, catalogues
from waybill.messages.message import Message

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Explained(Protocol):
    """Something that went wrong: an exception, a failure, a stored error or a problem document."""

    @property
    def code(self) -> str: ...

    @property
    def message(self) -> str:
        """The English sentence."""

    @property
    def key(self) -> str | None: ...

    @property
    def params(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, slots=True)
class _StoredError:
    """An error as the parameter of a message: `{"code": …, "message": …, "key": …, "params": …}`."""

    code: str
    message: str
    key: str | None
    params: Mapping[str, Any]

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> _StoredError:
        key, params = given.get("key"), given.get("params")
        return cls(
            str(given.get("code")),
            str(given.get("message") or ""),
            key if isinstance(key, str) else None,
            params if isinstance(params, dict) else {},
        )


class Language:
    def __init__(self, code: str, messages: Catalogue) -> None:
        self.code = code
        """As in `<html lang>`."""
        self.messages = messages
        self.name = self.say("language.name")
        """What its readers call it."""
        self._marks = {ord(","): self.say("numbers.group"), ord("."): self.say("numbers.decimal")}
        self._months = self.say("dates.months").split()
        self._short_months = self.say("dates.short_months").split()

    def say(self, key: str, /, **values: Any) -> str:
        """A message with its holes filled: text as it is, whole numbers as this language writes them.

        A value that is markup makes the whole message markup, and everything else in it is escaped.
        """
        return self._filled(self.messages[key], values)

    def tell(self, message: Message) -> str | None:
        """A message that was made elsewhere, perhaps by another version; None if this one cannot say it."""
        template = self.messages.get(message.key)
        if template is None or not template.holes <= message.params.keys():
            return None
        return self._filled(template, dict(message.params))

    def tell_stored(self, text: str) -> str:
        """What was stored as a key, such as a job's progress. Any other text is shown as it is."""
        return self.tell(Message(text)) or text

    def explain(self, error: Explained) -> str:
        """An error for the reader: by its key, else in English by its own sentence, else by what its code means."""
        said = self.tell(Message(error.key, error.params)) if error.key is not None else None
        if said is None and self.code == "en":
            said = error.message
        return said or self.say(f"errors.{error.code}" if f"errors.{error.code}" in self.messages else "errors.UNKNOWN")

    def moment(self, value: object) -> str:
        """A time in a message, to the second and in UTC. From JSON it comes as text; other text is shown as it is."""
        try:
            at = (value if isinstance(value, datetime) else datetime.fromisoformat(str(value))).astimezone(UTC)
        except ValueError:
            return str(value)
        parts = {name: f"{getattr(at, name):02}" for name in ("month", "day", "hour", "minute", "second")}
        return self.say("dates.moment", year=f"{at.year:04}", **parts)

    def _filled(self, template: Template, values: dict[str, Any]) -> str:
        if not values:
            return template.other
        marked = False
        for name, value in values.items():
            if isinstance(value, int) and value > 999:
                values = values | {name: self.number(value)}
            elif isinstance(value, list | tuple):
                values = values | {name: ", ".join(map(str, value))}
            elif isinstance(value, dict):
                values = values | {name: self.explain(_StoredError.read(value))}
            marked = marked or hasattr(value, "__html__")
        for name, form in template.formed:
            if form == TIME:
                values = values | {name: self.moment(values[name])}
            elif (word := self.messages.get(f"{form}.{values[name]}")) is not None:
                values = values | {name: word.other}
        pattern = template.pattern(values)
        if not marked:
            return pattern % values
        from markupsafe import escape  # pages only: no worker says anything with markup

        return escape(pattern) % values

    def number(self, value: float, digits: int = 0) -> str:
        plain = f"{value:,}" if isinstance(value, int) and not digits else f"{value:,.{digits}f}"
        return plain.translate(self._marks)

    def size(self, number: int) -> str:
        """`217 B`, `48 KB`, `1.4 MB`: in the units that file managers show, so that people recognise their file."""
        if number < 1000:
            return self.say("sizes.bytes", number=number)
        if number < 999_500:
            return self.say("sizes.kilobytes", number=round(number / 1000))
        return self.say("sizes.megabytes", number=self.number(number / 1_000_000, 1))

    def ago(self, moment: datetime, now: datetime) -> str:
        """`just now`, `5 min ago`, `3 h ago`, `yesterday`, then the date."""
        seconds = (now - moment).total_seconds()
        if seconds < 45:
            return self.say("times.now")
        if seconds < 45 * _MINUTE:
            return self.say("times.minutes", count=max(1, round(seconds / _MINUTE)))
        if seconds < 22 * _HOUR:
            return self.say("times.hours", count=max(1, round(seconds / _HOUR)))
        days = round(seconds / _DAY)
        if days <= 1:
            return self.say("times.yesterday")
        return self.say("times.days", count=days) if days < 7 else self.date(moment)

    def date(self, moment: datetime) -> str:
        day = moment.astimezone(UTC)
        return self.say("dates.short", day=day.day, month=self._short_months[day.month - 1], year=str(day.year))

    def exactly(self, moment: datetime) -> str:
        at = moment.astimezone(UTC)
        return self.say(
            "dates.exact",
            day=at.day,
            month=self._months[at.month - 1],
            year=str(at.year),
            hour=f"{at.hour:02}",
            minute=f"{at.minute:02}",
            second=f"{at.second:02}",
        )

    def wait(self, seconds: float) -> str:
        """How long something takes, roughly: nobody wants to read 73 seconds."""
        if seconds < _MINUTE:
            return self.say("waits.seconds", count=max(1, round(seconds)))
        if seconds < _HOUR:
            return self.say("waits.minutes", count=round(seconds / _MINUTE))
        return self.say("waits.hours", count=round(seconds / _HOUR))


@cache
def languages() -> dict[str, Language]:
    """By code, in the order in which pages offer them. What a pipeline left untranslated is said in English."""
    found = catalogues()
    return {code: Language(code, found["en"] | own) for code, own in found.items()}


def in_english(text: str) -> str:
    """What was stored as a key, such as a job's progress, in English. Any other text is returned as it is."""
    return languages()["en"].tell_stored(text)

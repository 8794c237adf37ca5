"""One language: its messages, and how it writes numbers, sizes and times. `words.js` does the same in a browser."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from markupsafe import Markup

from waybill.web.languages.catalogue import Catalogue, read
from waybill.web.languages.sentences import Sentences

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


class Language:
    def __init__(self, code: str, messages: Catalogue, sentences: Sentences) -> None:
        self.code = code
        """As in `<html lang>`."""
        self.messages = messages
        self._sentences = sentences
        self.name = self.say("language.name")
        """What its readers call it."""
        self._marks = {ord(","): self.say("numbers.group"), ord("."): self.say("numbers.decimal")}
        self._months = self.say("dates.months").split()
        self._short_months = self.say("dates.short_months").split()

    def say(self, key: str, /, **values: object) -> str:
        """A message with its holes filled: text as it is, whole numbers as this language writes them.

        A value that is markup makes the whole message markup, and everything else in it is escaped.
        """
        message = self.messages[key]
        if not values:
            return message.other
        marked = False
        for name, value in values.items():
            if isinstance(value, int) and value > 999:
                values = values | {name: self.number(value)}
            marked = marked or isinstance(value, Markup)
        return message.filled_with_markup(values) if marked else message.filled(values)

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

    def translate(self, sentence: str) -> str | None:
        """What another part of Waybill said in English; None if it is no sentence of the catalogue."""
        if self.code == "en":
            return sentence
        found = self._sentences.find(sentence)
        if found is None:
            return None
        key, values = found
        if f"states.{values.get('status')}" in self.messages:
            values["status"] = self.say(f"states.{values['status']}")
        return self.say(key, **values)

    def explain(self, code: str, sentence: str) -> str:
        """An error's own sentence if we know it in this language, else what its code means."""
        said = self.translate(sentence) if sentence else None
        return said or self.say(f"errors.{code}" if f"errors.{code}" in self.messages else "errors.UNKNOWN")


def _read() -> dict[str, Language]:
    catalogues = {path.stem: read(path) for path in sorted(Path(__file__).parent.glob("*.toml"))}
    sentences = Sentences(catalogues["en"])
    return {code: Language(code, messages, sentences) for code, messages in catalogues.items()}


LANGUAGES = _read()
"""By code, in the order in which they are offered."""
ENGLISH = LANGUAGES["en"]

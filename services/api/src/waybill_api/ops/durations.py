"""How long something took, as precisely as it deserves."""

from __future__ import annotations

from waybill.web.languages import Language


def duration(seconds: float, language: Language) -> str:
    """`120 ms`, `3.2 s`, `45 s`, `12 min`, `3 h`, `2 d`."""
    seconds = max(seconds, 0.0)
    if seconds < 0.9995:
        return language.say("ops.durations.milliseconds", count=round(seconds * 1000))
    if seconds < 9.95:
        return language.say("ops.durations.seconds", number=language.number(seconds, 1))
    if seconds < 119.5:
        return language.say("ops.durations.seconds", number=language.number(round(seconds)))
    if seconds < 2 * 3600 - 30:
        return language.say("ops.durations.minutes", number=language.number(round(seconds / 60)))
    if seconds < 48 * 3600:
        return language.say("ops.durations.hours", number=language.number(round(seconds / 3600)))
    return language.say("ops.durations.days", number=language.number(round(seconds / 86400)))

"""How long something took, as precisely as it deserves."""

from __future__ import annotations

from waybill.web.languages import Language


def duration(milliseconds: float, language: Language) -> str:
    """`0.4 ms`, `120 ms`, `3.2 s`, `45 s`, `12 min`, `3 h`."""
    seconds = max(milliseconds, 0.0) / 1000
    if seconds < 0.00995:
        return language.say("batches.durations.milliseconds", number=language.number(seconds * 1000, 1))
    if seconds < 0.9995:
        return language.say("batches.durations.milliseconds", number=language.number(round(seconds * 1000)))
    if seconds < 9.95:
        return language.say("batches.durations.seconds", number=language.number(seconds, 1))
    if seconds < 119.5:
        return language.say("batches.durations.seconds", number=language.number(round(seconds)))
    if seconds < 2 * 3600 - 30:
        return language.say("batches.durations.minutes", number=language.number(round(seconds / 60)))
    return language.say("batches.durations.hours", number=language.number(round(seconds / 3600)))

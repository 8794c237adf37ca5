"""When a cron expression ticks, in a time zone. Pure: the caller says from when.

`cronsim` reads the expression and counts on an idealised clock, one without summer time. This module decides what
happens when the clocks are moved, because the library loses ticks where they are moved by half an hour:

- **Hours are named** (`30 2 * * *`, `0 */6 * * *`): every local time ticks once. A time that is skipped in spring ticks
  when the clocks are moved (all times of one gap tick together, once). A time that comes twice in autumn ticks the
  first time.
- **Every hour** (`*/15 * * * *`): a rhythm. It ticks whenever the clock on the wall shows a matching time, so a
  repeated hour has its ticks and a skipped hour has none.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import takewhile
from zoneinfo import ZoneInfo

import tzdata
from cronsim import CronSim, CronSimError

from waybill.errors import Refused

_MINUTE = timedelta(minutes=1)
_WEEK = timedelta(weeks=1)
_LONGEST = 200
"""The most characters of an expression. Nobody writes a longer one."""
_FIELDS = "minute, hour, day of month, month, day of week"


class Cron:
    """A cron expression in a time zone. Ticks are in UTC, on the minute."""

    def __init__(self, expression: str, timezone: str = "UTC") -> None:
        self.expression = " ".join(expression.split())
        self.timezone = timezone
        self._zone = _zone(timezone)
        self._rhythm = _parsed(self.expression).hours == set(range(24))
        if next(self.after(datetime(2000, 1, 1, tzinfo=UTC)), None) is None:
            raise Refused(f"{expression!r} never comes: no day in fifty years matches it.")

    @property
    def words(self) -> str:
        """The expression in words: `At 02:30 every day`."""
        return _parsed(self.expression).explain()

    def local(self, moment: datetime) -> datetime:
        """The moment in the time zone of the expression."""
        return moment.astimezone(self._zone)

    def after(self, moment: datetime) -> Iterator[datetime]:
        """The ticks later than `moment`, for as long as there are any."""
        find = self._rhythmic if self._rhythm else self._named
        tick = find(moment)
        while tick is not None:
            yield tick
            tick = find(tick)

    def latest(self, until: datetime) -> datetime | None:
        """The last tick not later than `until`, without counting through all before it."""
        # Go back on the idealised clock to somewhere shortly before, then forwards on the real one.
        for plain in CronSim(self.expression, self._plain(until) + _MINUTE, reverse=True):
            start = min(self._instant(plain, fold=0), self._instant(plain, fold=1)) - _MINUTE
            ticks = list(takewhile(lambda tick: tick <= until, self.after(start)))
            if ticks:
                return ticks[-1]
        return None

    def _named(self, moment: datetime) -> datetime | None:
        """Every local time ticks once: take the next one on the idealised clock and find it on the real one."""
        for plain in CronSim(self.expression, self._plain(moment)):
            tick = self._instant(plain, fold=0)
            if self._plain(tick) != plain:  # no clock ever shows it
                tick = self._change(self._instant(plain, fold=1), tick)
            if tick > moment:  # otherwise it belongs to a repeated hour, and ticked the first time
                return tick
        return None

    def _rhythmic(self, moment: datetime) -> datetime | None:
        """The next minute at which the clock on the wall matches, jumping from one change of the clocks to the next."""
        at = moment.replace(second=0, microsecond=0) + _MINUTE
        while True:
            plain = self._plain(at)
            match = next(CronSim(self.expression, plain - _MINUTE), None)
            if match is None or match == plain:
                return at if match else None
            # A week at most: within a week, no zone moves its clocks there and back.
            at = self._change(at, at + min(match - plain, _WEEK))

    def _plain(self, moment: datetime) -> datetime:
        return self.local(moment).replace(tzinfo=None, fold=0)

    def _instant(self, plain: datetime, *, fold: int) -> datetime:
        return plain.replace(tzinfo=self._zone, fold=fold).astimezone(UTC)

    def _change(self, early: datetime, late: datetime) -> datetime:
        """When the zone's clocks are moved between `early` and `late`; `late` if they are not."""
        before = self.local(early).utcoffset()
        if self.local(late).utcoffset() == before:
            return late
        while late - early > _MINUTE:
            middle = early + (late - early) // _MINUTE // 2 * _MINUTE
            early, late = (middle, late) if self.local(middle).utcoffset() == before else (early, middle)
        return late


def _parsed(expression: str) -> CronSim:
    try:
        if len(expression) > _LONGEST or len(expression.split()) != 5:
            raise CronSimError(f"it has five fields ({_FIELDS})")
        return CronSim(expression, datetime(2000, 1, 1))  # noqa: DTZ001 - the idealised clock
    except CronSimError as error:
        why = str(error).replace("Bad ", "there is no such ").replace("-of-", " of ")
        raise Refused(f"{expression[:_LONGEST]!r} is not a cron expression: {why}.") from error


def _zone(name: str) -> ZoneInfo:
    # From the list, not from the machine, where `localtime` and stray files beside the zones would count as zones.
    if name not in _zones():
        like = get_close_matches(name, _zones(), 1)
        raise Refused(f"There is no time zone {name[:80]!r}.{f' Did you mean {like[0]}?' if like else ''}")
    return ZoneInfo(name)


@cache
def _zones() -> frozenset[str]:
    return frozenset(resources.files(tzdata).joinpath("zones").read_text().split())

"""Date formats such as `d MMMM yyyy`, with which a mapping reads and writes dates.

The tokens are CLDR's: `d`, `dd`, `M`, `MM`, `MMM`, `MMMM`, `yy`, `yyyy`. Other letters are written in single quotes
(`d 'de' MMMM`), and two single quotes mean one. All other characters mean themselves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from datetime import date
from functools import lru_cache

from waybill_documents.messages import DocumentMessage, Mistake

LONGEST_FORMAT = 100
LONGEST_DATE = 100
"""Characters of a printed date. Longer texts are refused, so that our patterns cannot take long."""

_TOKENS = {"d", "dd", "M", "MM", "MMM", "MMMM", "yy", "yyyy"}
_PIECE = re.compile(r"(?P<quoted>'(?:[^']|'')*')|(?P<token>d+|M+|y+)|(?P<other>[^\W\d_]+|.)", re.DOTALL)

# What may follow the day: English, French and Dutch ordinals, the German dot, and the º of `1.º de janeiro`.
_ORDINAL = r"(?: ?(?:st|nd|rd|th|er|ste|de|e)(?![^\W\d_])|\.?[º°]|\.)?"
_NUMBERS = {"d": r"(?P<day>[0-9]{1,2})", "M": r"(?P<month>[0-9]{1,2})", "yy": r"(?P<year>[0-9]{2})"}
_FIXED = {"d": r"(?P<day>[0-9]{2})", "M": r"(?P<month>[0-9]{2})", "yy": r"(?P<year>[0-9]{2})"}
_NAMED = {"MMM", "MMMM"}
_NAME = r"(?P<name>[^\W\d_]+)\.?"


class DateFormat:
    """One format. Use `date_format`, which caches them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._pieces = _pieces(text)
        fields = sorted(piece[0] for piece, is_token in self._pieces if is_token)
        self.complete = fields == ["M", "d", "y"]
        """Whether the format has a day, a month and a year, once each. Others can only write."""
        self._pattern = re.compile(self._as_pattern(), re.IGNORECASE) if self.complete else None

    def read(self, text: str, months: Mapping[str, int]) -> date | None:
        """The date, or None when the text does not match this format or is not a day in the calendar.

        `months` has the names as `folded` gives them. The text has only single spaces.
        """
        match = self._pattern.fullmatch(text) if self._pattern and len(text) <= LONGEST_DATE else None
        if match is None:
            return None
        found = match.groupdict()
        month = months.get(folded(found["name"])) if found.get("name") else int(found["month"])
        year = int(found["year"])
        if len(found["year"]) == 2:
            year += 2000 if year < 70 else 1900  # as POSIX does
        try:
            return date(year, month or 0, int(found["day"]))
        except ValueError:
            return None

    def write(self, day: date, months: tuple[str, ...]) -> str:
        """The date in this format. `months` are the twelve full names, of which `MMM` takes three letters."""
        name = months[day.month - 1]
        short = name[:3] if [other[:3] for other in months].count(name[:3]) == 1 else name[:4]  # French juin, juillet
        written = {
            "d": str(day.day),
            "dd": f"{day.day:02}",
            "M": str(day.month),
            "MM": f"{day.month:02}",
            "MMM": short,
            "MMMM": name,
            "yy": f"{day.year % 100:02}",
            "yyyy": f"{day.year:04}",
        }
        return "".join(written[piece] if is_token else piece for piece, is_token in self._pieces)

    def _as_pattern(self) -> str:
        """Accepts variations that do not change the date: one digit or two, spaces, ordinals, abbreviating dots."""
        named = any(is_token and piece in _NAMED for piece, is_token in self._pieces)
        parts: list[str] = []
        for index, (piece, is_token) in enumerate(self._pieces):
            around = [self._pieces[i] for i in (index - 1, index + 1) if 0 <= i < len(self._pieces)]
            if not is_token:
                parts.append(_as_separator(piece, loose=any(other in _NAMED for other, _ in around)))
            elif piece in _NAMED:
                parts.append(_NAME)
            elif piece == "yyyy":
                parts.append(r"(?P<year>[0-9]{4})")
            else:
                # Without separators, the parts of `ddMMyyyy` can only be told apart by their widths.
                joined = any(other_is_token and other not in _NAMED for other, other_is_token in around)
                parts.append((_FIXED if joined else _NUMBERS)[piece if piece == "yy" else piece[0]])
                if piece[0] == "d" and named:
                    parts.append(_ORDINAL)
        return "".join(parts)


@lru_cache(maxsize=256)
def date_format(text: str) -> DateFormat:
    """The format of that text. Raises a `Mistake` that says what is wrong with it."""
    return DateFormat(text)


def folded(name: str) -> str:
    """A month's name for comparison: without case, accents and the abbreviating dot."""
    plain = unicodedata.normalize("NFD", name.strip().rstrip(".").casefold())
    return "".join(character for character in plain if not unicodedata.combining(character))


def _pieces(text: str) -> tuple[tuple[str, bool], ...]:
    """The format split into tokens (true) and the text between them (false)."""
    if not text or len(text) > LONGEST_FORMAT:
        raise Mistake(DocumentMessage("mapping.date_format_length", most=LONGEST_FORMAT))
    pieces: list[tuple[str, bool]] = []
    for match in _PIECE.finditer(text):
        piece = match.group()
        if match.lastgroup == "token":
            if piece not in _TOKENS:
                raise Mistake(DocumentMessage("mapping.date_format", piece=piece))
            pieces.append((piece, True))
            continue
        if match.lastgroup == "quoted":
            piece = piece[1:-1].replace("''", "'") or "'"
        elif piece.isalpha() or piece == "'":
            raise Mistake(DocumentMessage("mapping.date_format", piece=piece))
        if pieces and not pieces[-1][1]:
            pieces[-1] = (pieces[-1][0] + piece, False)
        else:
            pieces.append((piece, False))
    return tuple(pieces)


def _as_separator(text: str, *, loose: bool) -> str:
    words = text.split()
    if not words:
        return " ?" if loose else " "
    # `de` must not take the first letters of `dezembro`, unless the format itself joins the two.
    end = r"(?![^\W\d_]) ?" if text[-1] == " " and words[-1][-1].isalpha() else " ?"
    return " ?" + " ?".join(re.escape(word) for word in words) + end

"""Functions on texts. A number, a date or a condition is converted as by `text(x)`.

No text grows beyond 100,000 characters. A longer one becomes empty, because a truncated value would be wrong.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from typing import Any

import re2

from waybill_documents.dates import DateFormat
from waybill_documents.expressions.numbers import MOST_DIGITS, number, plain_text, whole
from waybill_documents.messages import DocumentMessage, Mistake

LONGEST_TEXT = 100_000
LONGEST_PADDING = 1_000

_NOT_DIGITS = re.compile("[^0-9]+")
_ENGLISH_MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def as_text(value: Any) -> str | None:
    """The value as a locale-independent text: a plain number, an ISO date, `true` or `false`. None stays None."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal | int):
        return plain_text(value)
    if isinstance(value, date):
        return value.isoformat()
    return None


def as_number(value: Any) -> Decimal | None:
    """A number from a text with a decimal point and no grouping, as a mapping writes it."""
    if not isinstance(value, str):
        return number(value)
    text = value.strip()
    plain = text.removeprefix("-").replace(".", "", 1)
    # `isdigit` alone accepts digits of other scripts and superscripts.
    if not (plain.isascii() and plain.isdigit() and text[-1:] != "." and len(plain) <= MOST_DIGITS):
        return None
    return Decimal(text)


def as_date(value: Any) -> date | None:
    """A date, also from a text in ISO format."""
    if type(value) is date:
        return value
    if isinstance(value, str) and len(value) == 10 and value[4] == value[7] == "-":
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return None


def empty(value: Any) -> bool:
    """Whether there is no value, an empty text, or a table or column without rows."""
    return value is None or value == "" or value == []


def _bounded(text: str) -> str | None:
    return text if len(text) <= LONGEST_TEXT else None


def concat(*values: Any) -> str | None:
    """The values one after the other."""
    return _bounded("".join([as_text(value) or "" for value in values]))


def upper(value: Any) -> str | None:
    """In capitals."""
    text = as_text(value)
    return None if text is None else _bounded(text.upper())


def lower(value: Any) -> str | None:
    """In small letters."""
    text = as_text(value)
    return None if text is None else _bounded(text.lower())


def trim(value: Any) -> str | None:
    """Without spaces at either end."""
    text = as_text(value)
    return None if text is None else text.strip()


def digits(value: Any) -> str | None:
    """Only 0 to 9."""
    text = as_text(value)
    return None if text is None else _NOT_DIGITS.sub("", text)


def pad(value: Any, length: Any, fill: Any) -> str | None:
    """Filled up from the left."""
    text, width = as_text(value), whole(length)
    if text is None or width is None or width > LONGEST_PADDING or not (isinstance(fill, str) and len(fill) == 1):
        return None
    return text.rjust(width, fill)


def left(value: Any, count: Any) -> str | None:
    """The first characters."""
    text, length = as_text(value), whole(count)
    return None if text is None or length is None else text[: max(length, 0)]


def right(value: Any, count: Any) -> str | None:
    """The last characters."""
    text, length = as_text(value), whole(count)
    return None if text is None or length is None else text[max(len(text) - max(length, 0), 0) :]


def contains(value: Any, part: Any) -> bool | None:
    """Whether the text contains the part. Case does not matter, as everywhere in a mapping."""
    text, wanted = as_text(value), as_text(part)
    return None if text is None or wanted is None else wanted.casefold() in text.casefold()


def compiled(pattern: str) -> Any:
    """The pattern for RE2, which takes linear time whatever the text. A `Mistake` says what is wrong with it."""
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except UnicodeEncodeError:
        raise Mistake(DocumentMessage("mapping.pattern_not_unicode")) from None
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise Mistake(DocumentMessage("mapping.pattern_not_re2", detail=shown)) from None


def matches(value: Any, pattern: Any) -> bool | None:
    """Whether the pattern is found in the text."""
    text = as_text(value)
    if text is None:
        return None
    try:
        return pattern.search(text) is not None
    except UnicodeEncodeError:
        return None


Template = tuple[str | int, ...]
"""A replacement: texts, and the numbers of groups."""


def template(written: str, groups: int) -> Template:
    r"""A replacement, split at `\1` to `\9`; `\\` is a backslash. Raises a `Mistake` that says what is wrong."""
    parts: list[str | int] = []
    rest = written
    while rest:
        plain, backslash, rest = rest.partition("\\")
        parts.append(plain)
        if not backslash:
            break
        sign, rest = rest[:1], rest[1:]
        if sign == "\\":
            parts.append("\\")
        elif sign in tuple("0123456789") and int(sign) <= groups:
            parts.append(int(sign))
        else:
            raise Mistake(DocumentMessage("mapping.unknown_group", group=f"\\{sign}"))
    return tuple(part for part in parts if part != "")


def replace(value: Any, pattern: Any, by: Template) -> str | None:
    """The text with every match replaced. It stops as soon as the result is too long, before memory runs out."""
    text = as_text(value)
    if text is None:
        return None
    pieces: list[str] = []
    length = position = 0
    try:
        for match in pattern.finditer(text):
            start, end = match.span()
            pieces.append(text[position:start])
            pieces += [part if isinstance(part, str) else match.group(part) or "" for part in by]
            length += start - position + sum(map(len, pieces[-len(by) :] if by else ()))
            if length > LONGEST_TEXT:
                return None
            position = end
    except UnicodeEncodeError:
        return None
    pieces.append(text[position:])
    return _bounded("".join(pieces))


def extract(value: Any, pattern: Any) -> str | None:
    """The first match, or its first group. Without a match, it is empty, where `replace` keeps the whole text."""
    text = as_text(value)
    if text is None:
        return None
    try:
        match = pattern.search(text)
    except UnicodeEncodeError:
        return None
    return None if match is None else match.group(1 if pattern.groups else 0)


def date_text(value: Any, form: DateFormat) -> str | None:
    """The date as the format says."""
    day = as_date(value)
    return None if day is None else form.write(day, _ENGLISH_MONTHS)

"""Which language a reader gets: the one chosen on a page, else the one the browser asks for, else English."""

from __future__ import annotations

from starlette.requests import Request

from waybill.messages import Language, languages

LANGUAGES = languages()
"""By code, in the order in which pages offer them."""
ENGLISH = LANGUAGES["en"]

LANGUAGE_COOKIE = "waybill_language"
_LONGEST = 1000


def language_of(request: Request) -> Language:
    chosen = LANGUAGES.get(request.cookies.get(LANGUAGE_COOKIE, ""))
    return chosen or asked_for(request.headers.get("accept-language", ""))


def asked_for(header: str) -> Language:
    """The best of `id-ID, id;q=0.9, en;q=0.8`. Old browsers call Indonesian `in`."""
    best, weight = ENGLISH, 0.0
    for part in header[:_LONGEST].split(","):
        name, _, quality = part.partition(";")
        code = name.strip().lower().partition("-")[0]
        found = LANGUAGES.get("id" if code == "in" else code)
        if found is not None and _weight(quality) > weight:
            best, weight = found, _weight(quality)
    return best


def _weight(quality: str) -> float:
    text = quality.strip().removeprefix("q=")
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0

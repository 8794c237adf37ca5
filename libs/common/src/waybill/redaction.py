"""Decides what a secret is, and masks secrets in text that people may read.

`config` uses it for error messages and `log` for every line, so that both agree.
"""

from __future__ import annotations

import re
from functools import lru_cache

MASK = "***"

# Keys are compared in lower case without separators, so `x-api-key`, `apiKey` and `API_KEY` are the same.
_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|authorization|credential|cookie"
    r"|(token|tokens|pwd)$|(api|access|private|signing|encryption)key$"
)
# A lease token is a counter that fences writes. Without it in the log, nobody could explain a lost lease.
_NOT_SECRET = frozenset({"leasetoken", "leasetokens"})

# Digits before a slash are a port, not a password, so `http://host:8080/a@b` stays readable.
_BEFORE_PASSWORD = re.compile(r"://[^/?#:@]*:(?!\d{1,5}[/?#])")
_NAMED_SECRET = re.compile(
    r"""(passw(?:or)?d|passphrase|secret|(?<!lease_)(?<!lease)token|api[_-]?key|authorization|cookie)
        (["']?\s{0,8}[=:]\s{0,8})
        ("(?:[^"\\]|\\.)*"? | '(?:[^'\\]|\\.)*'? | (?:bearer|basic)\s+\S+ | [^\s&,;]+)""",
    re.IGNORECASE | re.VERBOSE,
)
_BEARER = re.compile(r"\b(bearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE)


_LONGEST_KNOWN = 64
"""Characters of a key that is remembered. The names of our fields are short; longer keys may come from anywhere."""


def is_secret_key(key: str) -> bool:
    """Whether a value under this key must never be shown."""
    return _known(key) if len(key) <= _LONGEST_KNOWN else _is_secret(key)


def _is_secret(key: str) -> bool:
    plain = re.sub(r"[^a-z0-9]", "", key.lower())
    return plain not in _NOT_SECRET and _SECRET_KEY.search(plain) is not None


_known = lru_cache(maxsize=1024)(_is_secret)


def redact_text(text: str) -> str:
    """Mask passwords in URLs, bearer tokens and values like `password=…`."""
    # Most texts in a log are ids and names. None of the patterns below matches without one of these.
    if ":" not in text and "=" not in text and "bearer" not in text.lower():
        return text
    if "://" in text:
        text = re.sub(r"\S+", lambda run: _without_url_password(run[0]), text)
    text = _NAMED_SECRET.sub(rf"\1\2{MASK}", text)
    return _BEARER.sub(rf"\1{MASK}", text)


def _without_url_password(run: str) -> str:
    # The password ends at the last `@`, because people forget to percent-encode it.
    end = run.rfind("@")
    start = next((found.end() for found in _BEFORE_PASSWORD.finditer(run) if found.end() <= end), None)
    return run if start is None else f"{run[:start]}{MASK}{run[end:]}"

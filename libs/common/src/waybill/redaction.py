"""Decides what a secret is, and masks secrets in text that people may read.

`config` uses it for error messages and `log` for every line, so that both agree.
"""

from __future__ import annotations

import re

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


def is_secret_key(key: str) -> bool:
    """Whether a value under this key must never be shown."""
    plain = re.sub(r"[^a-z0-9]", "", key.lower())
    return plain not in _NOT_SECRET and _SECRET_KEY.search(plain) is not None


def redact_text(text: str) -> str:
    """Mask passwords in URLs, bearer tokens and values like `password=…`."""
    if "://" in text:
        text = re.sub(r"\S+", lambda run: _without_url_password(run[0]), text)
    text = _NAMED_SECRET.sub(rf"\1\2{MASK}", text)
    return _BEARER.sub(rf"\1{MASK}", text)


def _without_url_password(run: str) -> str:
    # The password ends at the last `@`, because people forget to percent-encode it.
    end = run.rfind("@")
    start = next((found.end() for found in _BEFORE_PASSWORD.finditer(run) if found.end() <= end), None)
    return run if start is None else f"{run[:start]}{MASK}{run[end:]}"

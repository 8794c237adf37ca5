"""What counts as a secret, and how it is blanked out of anything a person may read.

`config` uses it for error messages, `log` for every line: one place decides, so that both agree.
"""

from __future__ import annotations

import re

MASK = "***"

# Matched against a key in lower case without separators, so `x-api-key`, `apiKey` and `API_KEY` are one.
_SECRET_KEY = re.compile(
    r"passw(or)?d|passphrase|secret|authorization|credential|cookie"
    r"|(token|tokens|pwd)$|(api|access|private|signing|encryption)key$"
)
# A lease token is a counter that fences writes; without it in the logs a lost lease cannot be explained.
_NOT_SECRET = frozenset({"leasetoken", "leasetokens"})

# Digits up to a slash are a port, not a password: `http://host:8080/a@b` stays readable.
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
    """The text with passwords in URLs, bearer tokens and `password=…` style values blanked out."""
    if "://" in text:
        text = re.sub(r"\S+", lambda run: _without_url_password(run[0]), text)
    text = _NAMED_SECRET.sub(rf"\1\2{MASK}", text)
    return _BEARER.sub(rf"\1{MASK}", text)


def _without_url_password(run: str) -> str:
    # The password reaches to the last `@`, since people forget to percent-encode theirs.
    end = run.rfind("@")
    start = next((found.end() for found in _BEFORE_PASSWORD.finditer(run) if found.end() <= end), None)
    return run if start is None else f"{run[:start]}{MASK}{run[end:]}"

"""Proofs that both ends of a connection know the same secret, without ever sending it.

The caller sends a time, a nonce and a code over both, the method and the path (HMAC-SHA256). The server checks it, and
puts a code over the caller's nonce and its own status into the answer. So a server can tell who may ask, and a caller
notices a stranger that listens on the server's address before it uses the answer. Neither learns the secret from the
other. A proof is good for two minutes, and once for each process of the server.

This is no TLS: bodies are neither hidden nor covered by the codes, so whoever can read or change the traffic between
the two can read and change documents (decision 0029).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

SCHEME = "Waybill-Proof"
ANSWER_HEADER = "Waybill-Proof"
WINDOW = 60.0
"""Seconds that the clocks of the two ends may differ, one way or the other."""

_GIVEN = re.compile(rf"{SCHEME} time=([0-9]{{1,12}}), nonce=([0-9a-f]{{32}}), code=([0-9a-f]{{64}})", re.ASCII)

Fault = Literal["missing", "wrong", "late", "repeated"]


class Unproven(Exception):
    """A request whose caller did not prove that it knows the secret."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that was proven: with which secret, and what the answer's proof must contain."""

    secret: bytes
    nonce: str

    def answer(self, status: int) -> str:
        """The proof in the answer."""
        return _code(self.secret, "answer", self.nonce, str(status))

    def is_answered(self, status: int, proof: str | None) -> bool:
        return hmac.compare_digest(self.answer(status).encode(), (proof or "").encode("latin-1", "replace"))


def ask(secret: bytes, method: str, path: str, now: float | None = None) -> tuple[Asked, dict[str, str]]:
    """What a caller remembers of its request, and the header that it sends."""
    nonce, moment = secrets.token_hex(16), str(int(time.time() if now is None else now))
    code = _code(secret, "request", method, path, moment, nonce)
    return Asked(secret, nonce), {"Authorization": f"{SCHEME} time={moment}, nonce={nonce}, code={code}"}


class Doorman:
    """The server's side. It accepts any of several secrets, so that one can replace another while both ends run."""

    def __init__(self, accepted: Sequence[bytes], clock: Callable[[], float] = time.time) -> None:
        self._accepted = accepted
        self._clock = clock
        self._seen: dict[str, float] = {}
        """Nonces by the time at which they can be forgotten, oldest first."""

    def check(self, method: str, path: str, header: str | None) -> Asked:
        """Unproven, unless the header proves that the caller knows one of the secrets."""
        if header is None:
            raise Unproven("missing")
        given = _GIVEN.fullmatch(header)
        if given is None:
            raise Unproven("wrong")
        moment, nonce, code = given.groups()
        matching = [
            secret
            for secret in self._accepted
            if hmac.compare_digest(_code(secret, "request", method, path, moment, nonce), code)
        ]
        if not matching:
            raise Unproven("wrong")
        now = self._clock()
        if abs(int(moment) - now) > WINDOW:
            raise Unproven("late")
        self._forget(now)
        if nonce in self._seen:
            raise Unproven("repeated")
        self._seen[nonce] = now + 2 * WINDOW
        return Asked(matching[0], nonce)

    def _forget(self, now: float) -> None:
        while self._seen and (oldest := next(iter(self._seen))) and self._seen[oldest] < now:
            del self._seen[oldest]


def _code(secret: bytes, *parts: str) -> str:
    message = "\n".join(("waybill", *parts)).encode("utf-8", "surrogateescape")
    return hmac.new(secret, message, hashlib.sha256).hexdigest()

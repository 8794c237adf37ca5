"""A browser's session: a signed cookie that says who the browser is.

Sessions are not stored. A session that signed in names its API key, and is valid no longer than that key. What is
stored is which sessions have ended, for as long as a copy of their cookie could be presented. When a session ends, all
replicas are notified.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from waybill.ids import new_id

if TYPE_CHECKING:
    from waybill.db.database import Connection

COOKIE = "waybill_session"
_VERSION = "1"
_LONGEST = 512

_TELL = "SELECT pg_notify('waybill_changes', $1)"

_END = """
INSERT INTO ended_sessions (session_id, until) VALUES ($1, now() + $2::float8 * interval '1 second')
    ON CONFLICT (session_id) DO NOTHING
"""

_HAS_ENDED = "SELECT EXISTS (SELECT FROM ended_sessions WHERE session_id = $1)"


@dataclass(frozen=True, slots=True)
class Session:
    id: uuid.UUID
    issued_at: int
    """Seconds since 1970."""
    key_id: uuid.UUID | None = None
    """The API key that it signed in with."""
    before: uuid.UUID | None = None
    """The session to return to after signing out, if its uploads could not be handed over to the tenant."""


def ended_topic(session_id: uuid.UUID) -> str:
    """The topic that is notified when a browser has left this session."""
    return f"ended:{session_id}"


async def tell_left(connection: Connection, session_id: uuid.UUID) -> None:
    """Tell the replicas that a browser has left this session. It may come back to it."""
    await connection.execute(_TELL, ended_topic(session_id))


async def end(connection: Connection, session_id: uuid.UUID, *, lasts: float) -> None:
    """End a session for good: its cookie is of no use any more, wherever a copy of it is. `lasts` is how long one would
    have been valid, in seconds."""
    async with connection.transaction():
        await connection.execute(_END, session_id, lasts)
        await tell_left(connection, session_id)


async def has_ended(connection: Connection, session_id: uuid.UUID) -> bool:
    return bool(await connection.fetchval(_HAS_ENDED, session_id))


class SessionSigner:
    """Writes session cookies and reads them back."""

    def __init__(self, secret: bytes, *, lasts: float) -> None:
        if len(secret) < 32:
            raise ValueError("a session secret has at least 32 bytes")
        self._secret = hashlib.sha256(b"waybill session\0" + secret).digest()
        self._lasts = lasts

    @property
    def max_age(self) -> int:
        return int(self._lasts)

    def start(self, now: float, key_id: uuid.UUID | None = None, before: uuid.UUID | None = None) -> Session:
        """A new session. Signing in always starts one, so that a planted cookie is of no use."""
        return Session(new_id(), int(now), key_id, before)

    def leave(self, session: Session, now: float) -> Session:
        """The session after signing out: the one to return to, or a new one."""
        return self.start(now) if session.before is None else Session(session.before, int(now))

    def dump(self, session: Session) -> str:
        facts = {"s": session.id.hex, "i": session.issued_at}
        if session.key_id is not None:
            facts["k"] = session.key_id.hex
        if session.before is not None:
            facts["b"] = session.before.hex
        body = _encode(json.dumps(facts, separators=(",", ":")).encode())
        return f"{_VERSION}.{body}.{_encode(self._mac(body))}"

    def load(self, cookie: str | None, now: float) -> Session | None:
        """The session of a cookie; None if the cookie is invalid or has expired."""
        if not cookie or len(cookie) > _LONGEST:
            return None
        version, _, rest = cookie.partition(".")
        body, _, mac = rest.partition(".")
        try:
            if version != _VERSION or not hmac.compare_digest(self._mac(body), _decode(mac)):
                return None
            facts = json.loads(_decode(body))
            key, before = (uuid.UUID(hex=facts[fact]) if facts.get(fact) else None for fact in ("k", "b"))
            session = Session(uuid.UUID(hex=facts["s"]), int(facts["i"]), key, before)
        except (ValueError, KeyError, TypeError, AttributeError, binascii.Error):
            return None
        return session if now < session.issued_at + self._lasts else None

    def worth_renewing(self, session: Session, now: float) -> bool:
        """Whether the cookie should be sent again. A browser that keeps coming keeps its session."""
        return now > session.issued_at + min(self._lasts / 2, 86400)

    def _mac(self, body: str) -> bytes:
        return hmac.digest(self._secret, body.encode(), "sha256")


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)

"""Who is asking, and what they may do: `principals`, `sessions` of browsers, `keys` of programs, shared `secrets`."""

from waybill.security.principals import ADMIN, PUBLIC, Principal, of_session, of_tenant
from waybill.security.sessions import COOKIE, Session, SessionSigner

__all__ = ["ADMIN", "COOKIE", "PUBLIC", "Principal", "Session", "SessionSigner", "of_session", "of_tenant"]

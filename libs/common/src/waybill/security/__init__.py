"""Who is asking, and what they may do: `principals`, browsers' `sessions`, programs' `keys`, shared `secrets`."""

from waybill.security.principals import PUBLIC, Permission, Principal, of_session, of_tenant
from waybill.security.sessions import COOKIE, Session, SessionSigner

__all__ = ["COOKIE", "PUBLIC", "Permission", "Principal", "Session", "SessionSigner", "of_session", "of_tenant"]

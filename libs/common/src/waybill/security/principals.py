"""Who is asking, as everything behind the door sees it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from enum import StrEnum

PUBLIC = "public"
"""The tenant of all browsers that have not signed in."""


class Permission(StrEnum):
    CONVERT_READ = "convert:read"
    CONVERT_WRITE = "convert:write"
    ADMIN = "admin"
    """Everything, and the pages for operators."""


@dataclass(frozen=True, slots=True)
class Principal:
    owner: str
    """Who may see a thing: `session:<uuid>` or `tenant:<name>`."""
    tenant: str
    """Who is billed, and shares fairly with others."""
    permissions: frozenset[Permission] = field(default_factory=frozenset)
    key_id: uuid.UUID | None = None
    """The key it came in with, or signed its browser in with."""

    def may(self, permission: Permission) -> bool:
        return permission in self.permissions or Permission.ADMIN in self.permissions

    @property
    def signed_in(self) -> bool:
        return self.key_id is not None


def of_session(session_id: uuid.UUID) -> Principal:
    """A browser by itself: it owns what it uploads, inside the tenant `public`."""
    return Principal(f"session:{session_id}", PUBLIC, frozenset({Permission.CONVERT_READ, Permission.CONVERT_WRITE}))


def of_tenant(tenant: str, permissions: frozenset[Permission], key_id: uuid.UUID) -> Principal:
    """A program with a key, or a browser signed in with one: it owns as its tenant does."""
    return Principal(f"tenant:{tenant}", tenant, permissions, key_id)

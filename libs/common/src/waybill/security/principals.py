"""Who is asking, and what they may do, as the services see it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from functools import cache

from waybill.pipelines import installed

PUBLIC = "public"
"""The tenant of all browsers that have not signed in."""


ADMIN = "admin"
"""The permission that includes every other one, and shows what only operators may see. Pipelines define the rest."""


@dataclass(frozen=True, slots=True)
class Principal:
    owner: str
    """Whose things they may see: `session:<uuid>` or `tenant:<name>`."""
    tenant: str
    """Who is billed, and between whom the workers' time is shared."""
    permissions: frozenset[str] = field(default_factory=frozenset)
    key_id: uuid.UUID | None = None
    """The API key of the request, or the one that the browser signed in with."""

    def may(self, permission: str) -> bool:
        return permission in self.permissions or ADMIN in self.permissions

    @property
    def signed_in(self) -> bool:
        return self.key_id is not None


def of_session(session_id: uuid.UUID) -> Principal:
    """A browser that did not sign in: it owns what it uploads, inside the tenant `public`."""
    return Principal(f"session:{session_id}", PUBLIC, _visitor_permissions())


def of_tenant(tenant: str, permissions: frozenset[str], key_id: uuid.UUID) -> Principal:
    """A program with a key, or a browser signed in with one: it shares everything with its tenant."""
    return Principal(owner_of_tenant(tenant), tenant, permissions, key_id)


def owner_of_tenant(tenant: str) -> str:
    """The owner of everything that a tenant's programs and people share."""
    return f"tenant:{tenant}"


@cache
def known_permissions() -> dict[str, str]:
    """Every permission that an API key may have, and what it allows in words."""
    pipelines = {name: words for pipeline in installed() for name, words in pipeline.permissions.items()}
    return {**pipelines, ADMIN: "everything, for all tenants"}


@cache
def _visitor_permissions() -> frozenset[str]:
    return frozenset(name for pipeline in installed() for name in pipeline.visitor_permissions)

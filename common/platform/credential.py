"""Roles, and the identity that a request proves with a key or a token. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Role = Literal["read", "write", "admin", "operator"]
# Roles of a tenant's keys; each role includes the rights of those before it.
ROLES: Final[tuple[Role, ...]] = ("read", "write", "admin")
# The role of the platform's own keys, which belong to no tenant.
OPERATOR: Final = "operator"


@dataclass(frozen=True, slots=True)
class Credential:
    """The identity that a request's key or token proves. Everything that the request does belongs to its tenant."""

    tenant: str
    role: Role
    key_id: str

    @property
    def by(self) -> str:
        """The name in the audit."""
        return f"{OPERATOR}:{self.key_id}" if self.role == OPERATOR else self.key_id

    def may(self, needed: Role) -> bool:
        """Whether the role suffices. Operators may use only operator routes, and tenants only tenant routes."""
        if OPERATOR in (self.role, needed):
            return self.role == needed
        return ROLES.index(self.role) >= ROLES.index(needed)

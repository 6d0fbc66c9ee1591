"""Whether a request may do what it asks for: its role, its tenant's state, and the rate of its requests."""

from __future__ import annotations

from api.services import Services
from common.errors import Forbidden, Unauthenticated
from common.jobs.ledger import require_active
from common.platform.credential import OPERATOR, Credential, Role
from common.tenants.states import ACTIVE, SUSPENDED


def admit(
    services: Services,
    credential: Credential,
    needed: Role,
    now: float,
    *,
    weight: int = 1,
    while_suspended: bool = False,
) -> None:
    """Count the request, which needs the role `needed`. A suspended tenant may read, and do `while_suspended`.

    Raises Unauthenticated, RateExceeded, TenantSuspended, Forbidden.
    """
    if credential.role != OPERATOR:
        rules = services.known_tenants.rules(credential.tenant, now)
        if rules is None or rules.state not in (ACTIVE, SUSPENDED):
            raise Unauthenticated  # the tenant was deleted, or never existed
        services.request_rate.take(credential.tenant, rules.quotas.requests_per_minute, now, weight)
        if credential.may(needed) and not (needed == "read" or while_suspended):
            require_active(rules, credential.tenant)
    if not credential.may(needed):
        raise Forbidden(credential.role, needed)

"""Whether the audit is being sealed, and whether the platform's own is as it was sealed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from common.platform.findings import Finding, failed, not_checked, ok, warning
from common.storage import keys
from common.tenants.audit import Audit
from common.tenants.audit_chain import SealRound
from common.timing.instants import has_ended, rfc3339
from minute8.cli.audit_comparison import verified
from minute8.cli.doctor.deployment import Deployment

# Ticks begin a round each hour.
_STALE_S: Final = 3 * 3_600
# Of the operator's clock.
_CLOCKS_S: Final = 600


def sealed(deployment: Deployment) -> Iterator[Finding]:
    """How long ago the audit was sealed, what ticks found altered, and a comparison of the platform's entries."""
    now, audit = deployment.clock.now(), Audit(deployment.tenants_table())
    try:
        last = SealRound.read(deployment.due_table())
        if last is None:
            yield not_checked("no tick has sealed the audit yet")
            return
        state = verified(audit, keys.OPERATORS, now, last.complete_at)
    except deployment.client("dynamodb").exceptions.ResourceNotFoundException:
        yield not_checked("a table is missing; its own check says which")
        return
    tampered = [f"the platform: {item.name} {item.of}" for item in state.tamperings]
    if tampered := [*last.tampered, *tampered]:
        yield failed(
            f"the audit is not as it was sealed: {tampered[0]}",
            f"minute8 audit verify --stage {deployment.stage}, and who may write the table {deployment.named('audit')}",
        )
    began = rfc3339(last.began_at)
    if has_ended(last.began_at + _STALE_S, now, _STALE_S + _CLOCKS_S):
        yield warning(
            f"the last round of seals began at {began}",
            "the scheduler's log says why: lines with the message `sealing`",
        )
    yield ok(f"sealed by the round of {began}; {state.entries} entries of the platform agree")

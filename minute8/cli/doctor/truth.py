"""Whether the tables agree: `minute8 check` reads all of them, the doctor what ticks found and a part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from common.errors import Minute8Error
from common.platform.findings import Finding, Repair, failed, not_checked, ok, repairable
from common.storage.conflicts import ConditionFailed
from common.truth.contradiction import Contradiction, Subject
from common.truth.truth import Truth
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.output import plural

# Jobs, due entries and shards: some seconds of reading.
_MAX_EXAMINED: Final = 2_000
CONTRADICTIONS_NAMED: Final = 5

# What was looked at, and what contradicts it.
Contradicted = tuple[Subject, list[Contradiction]]


def check_tables(deployment: Deployment) -> Iterator[Finding]:
    """What ticks found contradictory and is so now, and what a look at the first jobs finds."""
    truth = deployment.truth()
    try:
        contradicted = list(truth.all(_MAX_EXAMINED))
    except deployment.client("dynamodb").exceptions.ResourceNotFoundException:
        yield not_checked("a table is missing; its own check says which")
        return
    contradictions = [contradiction for _, of_subject in contradicted for contradiction in of_subject]
    if not contradictions:
        yield ok("jobs, due entries, groups, tenants and runs agree, as far as ticks have read them")
        return
    shown = "; ".join(
        f"{item.name} {item.subject.name}: {item.detail}" for item in contradictions[:CONTRADICTIONS_NAMED]
    )
    more = (
        f", and {len(contradictions) - CONTRADICTIONS_NAMED} more"
        if len(contradictions) > CONTRADICTIONS_NAMED
        else ""
    )
    message = f"{plural(len(contradictions), 'contradiction')}: {shown}{more}"
    command = f"minute8 check --stage {deployment.stage} --fix"
    if any(contradiction.repair for contradiction in contradictions):
        sends = any(contradiction.sends for contradiction in contradictions)
        yield repairable(
            message, Repair(command, lambda: _repaired(truth, contradicted), order=2, sends=sends)
        )
    else:
        yield failed(message, "; ".join(sorted({contradiction.remedy for contradiction in contradictions})))


def _repaired(truth: Truth, contradicted: Iterable[Contradicted]) -> str:
    results = [
        repair_outcome(contradiction)
        for _, of_subject in contradicted
        for contradiction in of_subject
        if contradiction.repair
    ]
    truth.refresh(subject for subject, _ in contradicted)
    if failures := [result for result in results if result != "repaired"]:
        raise RuntimeError(f"{len(failures)} of {len(results)} are left: {failures[0]}")
    return f"{len(results)} repaired"


def repair_outcome(contradiction: Contradiction) -> str:
    """Make its repair. Returns `repaired`, or `left: …`; another repair or change may have been faster."""
    if contradiction.repair is None:
        return f"left: {contradiction.remedy}"
    try:
        contradiction.repair()
    except ConditionFailed:
        return "left: it has changed meanwhile; check again"
    except Minute8Error as error:
        return f"left: {error}"
    return "repaired"

"""Whether the tables agree: `minute8 check` reads all of them, the doctor what ticks found and a part."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from common.errors import Minute8Error
from common.platform.findings import Finding, Repair, failed, not_checked, ok, repairable
from common.storage.conflicts import ConditionFailed
from common.truth.contradiction import RUN_STUCK, Contradiction, Subject
from common.truth.truth import Truth
from minute8.cli.doctor.deployment import Deployment
from minute8.cli.output import plural

# Jobs, due entries and shards: some seconds of reading.
_MAX_EXAMINED: Final = 2_000
CONTRADICTIONS_NAMED: Final = 5
_MAX_WAIT_S: Final = 10
# One repair can bring the next one to light.
_MAX_ROUNDS: Final = 4

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
    contradictions = listed(contradicted)
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


def _repaired(truth: Truth, contradicted: Sequence[Contradicted]) -> str:
    """Raises RuntimeError if something is left."""
    results, remaining = repaired(truth, contradicted, repair_outcome)
    done = [result for _, result in results if result == "repaired"]
    if remaining:
        first = f"{remaining[0].name} {remaining[0].subject.name}"
        raise RuntimeError(
            f"{len(done)} of {len(results)} are repaired, and {len(remaining)} are found: {first}"
        )
    return f"{len(done)} repaired"


def repaired(
    truth: Truth, contradicted: Sequence[Contradicted], repair: Callable[[Contradiction], str]
) -> tuple[list[tuple[Contradiction, str]], list[Contradiction]]:
    """Make each repair, then those that they bring to light. Returns what became of each, and what is left."""
    results: list[tuple[Contradiction, str]] = []
    tried: set[tuple[str, Subject, str]] = set()
    for _ in range(_MAX_ROUNDS):
        new = [item for item in listed(contradicted) if (item.name, item.subject, item.detail) not in tried]
        if not new:  # what is left has been tried
            break
        results += [(item, repair(item)) for item in new]
        tried |= {(item.name, item.subject, item.detail) for item in new}
        subjects = dict.fromkeys(subject for subject, _ in contradicted)
        _wait_for_runs(truth, subjects)
        truth.refresh(subjects)
        contradicted = list(truth.all())
    return results, listed(contradicted)


def _wait_for_runs(truth: Truth, subjects: Iterable[Subject]) -> None:
    """A run that was sent again goes on in seconds."""
    for _ in range(_MAX_WAIT_S):
        if not any(item.name == RUN_STUCK for subject in subjects for item in truth.look(subject)):
            return
        truth.clock.sleep(1)


def listed(contradicted: Iterable[Contradicted]) -> list[Contradiction]:
    """All contradictions, without what was looked at."""
    return [contradiction for _, of_subject in contradicted for contradiction in of_subject]


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

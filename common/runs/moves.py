"""The moves of a run from state to state: which there are, and the condition of each in DynamoDB's words.

docs/runs.md shows the same table. The conditions are in tests/golden/moves.jsonl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from common.runs.run import Run
from common.runs.states import (
    CANCELLED,
    DISPATCHED,
    FAILED,
    NONE,
    QUEUED,
    RETRYING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
)
from common.storage.expressions import Attribute, Condition


@dataclass(frozen=True, slots=True)
class By:
    """Who moves a run: an attempt, with its claim's token and message, at `now`."""

    attempt: int = 0
    token: str = ""
    message_id: str = ""
    now: float = 0.0
    # What has been told until now, if none of it may be overlooked.
    signs: int | None = None


@dataclass(frozen=True, slots=True)
class Lost:
    """A move that was not made: the run is in another state, or another's. None: it has no record."""

    run: Run | None


def _next_attempt(by: By) -> Condition:
    # The words of a claim stay as they were measured.
    return Condition("#attempt = :before", {":before": by.attempt - 1})


def _same_attempt(by: By) -> Condition:
    return Attribute("attempt") == by.attempt


def _same_claim(by: By) -> Condition:
    return Attribute("claim_token") == by.token


def _same_message(by: By) -> Condition:
    own = (Attribute("claimed_by") == by.message_id) & _same_attempt(by)
    return own if by.signs is None else own & (Attribute("signs") == by.signs)


def _untold(by: By) -> Condition:
    """The claim's target has not told its end."""
    return _same_claim(by) & Condition("NOT #reported_attempt = :attempt", {":attempt": by.attempt})


def _untold_in_time(by: By) -> Condition:
    return _untold(by) & (Attribute("lease_until") >= by.now)


def _dead(by: By) -> Condition:
    """The lease of the attempt's claim is over, because its executor died.

    The record of an `Event` run is written before the call. So only a redelivery of the same message shows that its
    executor died, unless the record says that the call was made. A target that has accepted or ended the work ends the
    run by its callback. A message that was redriven from the dead letters has a new id.
    """
    return Condition(
        "#attempt = :attempt AND #lease_until < :now"
        " AND NOT #accepted_attempt = :attempt AND NOT #reported_attempt = :attempt"
        " AND (#status = :running OR (#claimed_by = :message AND NOT #settled_attempt = :attempt))",
        {":attempt": by.attempt, ":now": by.now, ":message": by.message_id, ":running": RUNNING},
    )


def _cancelled(_: By) -> Condition:
    return Attribute("reason") == CANCELLED


@dataclass(frozen=True, slots=True)
class Move:
    """From which states to which; to none: it stays in its state. `whose` is what must be true besides."""

    sources: tuple[str, ...]
    to: tuple[str, ...] = ()
    whose: Callable[[By], Condition] | None = None

    def condition(self, by: By) -> Condition:
        """What must be true of the record."""
        states = _is_in(self.sources)
        return states & self.whose(by) if self.whose else states


MOVES: Final[dict[str, Move]] = {
    "queue": Move((NONE,), (QUEUED,)),
    "claim": Move((NONE, QUEUED), (RUNNING, DISPATCHED)),
    "claim the next attempt": Move((RETRYING,), (RUNNING, DISPATCHED), _next_attempt),
    # A message of the attempt comes after the lease: its executor died.
    "take over": Move((RUNNING, DISPATCHED), (RUNNING, DISPATCHED), _dead),
    # Of a dispatched run: the service refused it, or the target reports the result.
    "finish": Move((RUNNING, DISPATCHED), (SUCCEEDED, FAILED, RETRYING), _same_message),
    "skip": Move((NONE, QUEUED), (SKIPPED,)),
    "miss": Move((NONE,), (SKIPPED,)),
    # Before the next attempt, for example because the job was paused or deleted.
    "give up": Move((RETRYING,), (FAILED,), _next_attempt),
    "cancel": Move((NONE, QUEUED), (SKIPPED,)),
    "cancel the next attempt": Move((RETRYING,), (FAILED,)),
    # Before it was due: the record is deleted.
    "take back a cancellation": Move((SKIPPED,), (NONE,), _cancelled),
    "open again by hand": Move((FAILED,), (RETRYING,), _same_attempt),
    "accept": Move((RUNNING,), (), _untold),
    "tell": Move((RUNNING,), (), _untold_in_time),
    "settle": Move((DISPATCHED,), (), _same_message),
    "stop": Move((RUNNING, DISPATCHED), (), _same_claim),
}


def by_claim_of(run: Run, now: float = 0.0) -> By:
    """Whoever acts for the newest claim of a run."""
    return By(run.attempt, run.claim_token, run.claimed_by, now)


@lru_cache(maxsize=32)
def _is_in(states: tuple[str, ...]) -> Condition:
    named = [state for state in states if state != NONE]
    values = {f":{state}": state for state in named}
    terms = ["attribute_not_exists(pk)"] if NONE in states else []
    if len(named) == 1:
        terms.append(f"#status = :{named[0]}")
    elif named:
        terms.append(f"#status IN ({', '.join(values)})")
    return Condition(" OR ".join(terms), values)

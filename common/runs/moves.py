"""The moves of a run from state to state: which there are, and the condition of each in DynamoDB's words.

docs/runs.md shows the same table. The conditions are in tests/golden/moves.jsonl.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from common.runs.run import Run
from common.runs.states import (
    DISPATCHED,
    FAILED,
    NONE,
    QUEUED,
    RETRYING,
    RUNNING,
    SKIPPED,
    SUCCEEDED,
)
from common.storage.expressions import Condition


class By(NamedTuple):
    """Who moves a run: an attempt, with its claim's token and message, at `now`, who knows of so many `signs`."""

    attempt: int = 0
    token: str = ""
    message_id: str = ""
    now: float = 0.0
    signs: int = 0

    @property
    def before(self) -> int:
        """The attempt before this one."""
        return self.attempt - 1


@dataclass(frozen=True, slots=True)
class MoveRefused:
    """A move that was not made: the run is in another state, or another's. None: it has no record."""

    run: Run | None


class Move(NamedTuple):
    """From which states to which; to none: it stays in its state.

    `whose` is what must be true besides, in DynamoDB's words: its placeholders are fields of `By`, or words themselves.
    """

    sources: tuple[str, ...]
    to: tuple[str, ...] = ()
    whose: str = ""

    def condition(self, by: By) -> Condition:
        """What must be true of the record."""
        condition, names = _rendered(self.sources, self.whose)
        if not names:
            return condition
        values = dict(condition.values)
        for name in names:
            values[f":{name}"] = getattr(by, name)
        return Condition(condition.expression, values)


_ATTEMPT: Final = "#attempt = :attempt"
_NEXT_ATTEMPT: Final = "#attempt = :before"
_CLAIM: Final = "#claim_token = :token"
_MESSAGE: Final = f"#claimed_by = :message_id AND {_ATTEMPT}"
_UNTOLD: Final = f"{_CLAIM} AND NOT #reported_attempt = :attempt"
# The lease of the attempt's claim is over, because its executor died. The record of an `Event` run is written before
# the call. So only a redelivery of the same message shows that its executor died, unless the record says that the call
# was made. A target that has accepted or ended the work ends the run by its callback. A message that was redriven from
# the dead letters has a new id.
_DEAD: Final = (
    f"{_ATTEMPT} AND #lease_until < :now"
    " AND NOT #accepted_attempt = :attempt AND NOT #reported_attempt = :attempt"
    " AND (#status = :running OR (#claimed_by = :message_id AND NOT #settled_attempt = :attempt))"
)

MOVES: Final[dict[str, Move]] = {
    "queue": Move((NONE,), (QUEUED,)),
    # It waits for something else now: another run, or the end of a pause.
    "wait on": Move((QUEUED,)),
    "claim": Move((NONE, QUEUED), (RUNNING, DISPATCHED)),
    "claim the next attempt": Move((RETRYING,), (RUNNING, DISPATCHED), _NEXT_ATTEMPT),
    # A message of the attempt comes after the lease: its executor died.
    "take over": Move((RUNNING, DISPATCHED), (RUNNING, DISPATCHED), _DEAD),
    # By the claim, not the message: after a takeover the same message has another claim. Of a dispatched run: the
    # service refused it, or the target reports the result.
    "finish": Move((RUNNING, DISPATCHED), (SUCCEEDED, FAILED, RETRYING), _CLAIM),
    # The end that a target told must not overlook a later sign.
    "finish by a sign": Move((RUNNING,), (SUCCEEDED, FAILED, RETRYING), f"{_CLAIM} AND #signs = :signs"),
    "skip": Move((NONE, QUEUED), (SKIPPED,)),
    "miss": Move((NONE,), (SKIPPED,)),
    # It had a record, which was lost with the table.
    "record anew": Move((NONE,), (DISPATCHED,)),
    # The next attempt waits: the job is paused, its target is held, or other runs go on.
    "put off": Move((RETRYING,), (), _NEXT_ATTEMPT),
    # Before the next attempt, for example because the job was deleted.
    "give up": Move((RETRYING,), (FAILED,), _NEXT_ATTEMPT),
    "cancel": Move((NONE, QUEUED), (SKIPPED,)),
    "cancel the next attempt": Move((RETRYING,), (FAILED,)),
    # Before it was due: the record is deleted.
    "take back a cancellation": Move((SKIPPED,), (NONE,), "#reason = :cancelled"),
    "open again by hand": Move((FAILED,), (RETRYING,), _ATTEMPT),
    "accept": Move((RUNNING,), (), _UNTOLD),
    "tell": Move((RUNNING,), (), f"{_UNTOLD} AND #lease_until >= :now"),
    "tell again": Move((RUNNING,), (), f"{_CLAIM} AND #reported_attempt = :attempt AND #signs = :signs"),
    # A durable execution goes on: the attempt looks again later.
    "look": Move((RUNNING,), (), f"{_UNTOLD} AND #signs = :signs"),
    "settle": Move((DISPATCHED,), (), _MESSAGE),
    "end by hand": Move((RUNNING, DISPATCHED), (FAILED,), _CLAIM),
    "note a stop": Move((FAILED,), (), _CLAIM),
}


def by_claim_of(run: Run, now: float = 0.0) -> By:
    """Whoever acts for the newest claim of a run."""
    return By(run.attempt, run.claim_token, run.claimed_by, now)


@lru_cache(maxsize=32)
def _rendered(sources: tuple[str, ...], whose: str) -> tuple[Condition, tuple[str, ...]]:
    """The condition with the words that it compares with, and the fields of `By` that it needs besides."""
    states = [f":{state}" for state in sources if state != NONE]
    terms = ["attribute_not_exists(pk)"] if NONE in sources else []
    if states:
        terms.append(f"#status = {states[0]}" if len(states) == 1 else f"#status IN ({', '.join(states)})")
    placeholders = dict.fromkeys([*states, *re.findall(r":\w+", whose)])
    words = {name: name[1:] for name in placeholders if not hasattr(By, name[1:])}
    names = tuple(name[1:] for name in placeholders if name not in words)
    return Condition(" OR ".join(terms) + (f" AND {whose}" if whose else ""), words), names

"""What the target of a run with `completion: callback` tells: that it goes on, that it has succeeded, or failed.

The token of an attempt is its only proof. A record keeps a hash of it. What is told is written to the record, and the
executor ends the run: an end is brought to it by the attempt's own message.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from msgspec import convert

from common.errors import Conflict, Unauthenticated
from common.planning.execution import Execution, split_execution_id
from common.planning.queue import ExecutionsQueue
from common.runs.claims import MAX_CALLBACK_S, callback_hash
from common.runs.outcome import Outcome
from common.runs.run import Report, Run
from common.runs.states import FAILED, RUNNING, SUCCEEDED
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Table
from common.storage.wire import Expression, Item

PROGRESS_CHARS: Final = 200


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What the target hears: the run's status, until when it must give another sign, and whether it is to stop."""

    record: Run
    stop: bool = False


class Callbacks:
    """Writes what targets tell. `queue` is the executions queue."""

    def __init__(self, runs: Table, queue: ExecutionsQueue) -> None:
        self._runs = runs
        self._queue = queue

    def proven(self, execution_id: str, token: str) -> Run:
        """The record of the run whose newest attempt has this token. Raises Unauthenticated, whatever is wrong."""
        names = split_execution_id(execution_id)
        item = self._runs.get(keys.run(*names)) if names else None
        record = Run.from_item(item) if item else None
        if record is None or record.callback is None:
            raise Unauthenticated
        hashed = callback_hash(record.claim_token, token)
        if not hmac.compare_digest(hashed, record.callback.hash):
            raise Unauthenticated
        return record

    def goes_on(self, record: Run, progress: Mapping[str, Any], now: float) -> CalledBack:
        """The target works on, with its `progress`. If a person has stopped the run, this ends it.

        A run that has ended tells the target to stop.
        """
        assert record.callback
        if record.is_to_stop:
            if record.status == RUNNING:
                with suppress(Conflict):  # it has told its end before
                    self._report(record, {"stopped": True}, now)
            return CalledBack(record, stop=True)
        until = min(now + record.callback.wait_s, record.started_at + MAX_CALLBACK_S)
        change = Expression(
            "SET #lease_until = :until, #expires_at = :expires, #accepted_attempt = :attempt,"
            " #progress = :progress ADD #signs :one",
            {
                ":until": until,
                ":expires": int(until) + record.callback.kept_s,
                ":attempt": record.attempt,
                ":progress": {**progress, "attempt": record.attempt, "at": now},
                ":one": 1,
            },
        )
        try:
            item = self._runs.update(record.key, change, _unreported(record, now))
        except ConditionFailed as conflict:
            return CalledBack(Run.existing(conflict) or record, stop=True)
        return CalledBack(Run.from_item(item))

    def ends(self, record: Run, outcome: Outcome, now: float) -> CalledBack:
        """The target has ended its work. The same end again changes nothing. Raises Conflict: it ended otherwise."""
        if record.status == (SUCCEEDED if outcome.ok else FAILED):
            return CalledBack(record)
        return CalledBack(self._report(record, {"ok": outcome.ok, **outcome.to_item()}, now, outcome))

    def _report(self, record: Run, report: Item, now: float, outcome: Outcome | None = None) -> Run:
        """Write the end down, and send the message by which the executor ends the run. Raises Conflict."""
        if outcome and outcome.permanent:
            report = {**report, "permanent": True}
        change = Expression(
            "SET #reported_attempt = :attempt, #report = :report ADD #signs :one",
            {":attempt": record.attempt, ":report": {**report, "at": now}, ":one": 1},
        )
        try:
            record = Run.from_item(self._runs.update(record.key, change, _unreported(record, now)))
        except ConditionFailed as conflict:
            stored = Run.existing(conflict)
            if stored is None or not _is_same_report(stored, record, report):
                raise Conflict(
                    f"run {record.run_name} of {record.job_id} is {stored.status if stored else 'gone'}, "
                    "or has reported another end, or its time is over"
                ) from None
            record = stored
        assert record.callback
        self._queue.send([Execution.decode(record.callback.message)])
        return record


def _is_same_report(stored: Run, record: Run, report: Item) -> bool:
    """Whether this end is written already: the answer to the request before may have been lost."""
    is_reported = stored.claim_token == record.claim_token and stored.reported_attempt == record.attempt
    return is_reported and stored.report == convert({**report, "at": getattr(stored.report, "at", 0)}, Report)


def _unreported(record: Run, now: float) -> Expression:
    """The condition that the attempt goes on, that its time is not over, and that nobody has told its end."""
    return Expression(
        "#status = :running AND #claim_token = :token AND #lease_until >= :now"
        " AND NOT #reported_attempt = :attempt",
        {
            ":running": RUNNING,
            ":token": record.claim_token,
            ":now": now,
            ":attempt": record.attempt,
        },
    )

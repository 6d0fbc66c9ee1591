"""What the target of a run with `completion: callback` tells: that it goes on, that it has succeeded, or failed.

The token of an attempt is its only proof. A record keeps a hash of it. What is told is written to the record, and the
executor ends the run: an end is brought to it by the attempt's own message.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from msgspec import to_builtins
from msgspec.structs import replace

from common.cache import convert
from common.errors import Conflict, Unauthenticated
from common.planning.execution import Execution, split_execution_id
from common.planning.queue import ExecutionsQueue
from common.runs.claims import MAX_CALLBACK_S, callback_hash
from common.runs.moves import MoveRefused
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.run import Report, Run
from common.runs.states import FAILED, RUNNING, SUCCEEDED
from common.storage.expressions import change

PROGRESS_CHARS: Final = 200
# The sender of an end's message may have died: the same end, told again, sends another after so long, then after twice
# as long, and so on. So many tellings at once send one.
SEND_AGAIN_AFTER_S: Final = 1


@dataclass(frozen=True, slots=True)
class CalledBack:
    """What the target hears: the run's status, until when it must give another sign, and whether it is to stop."""

    run: Run
    stop: bool = False


class Callbacks:
    """Writes what targets tell. `queue` is the executions queue."""

    def __init__(self, runs: Runs, queue: ExecutionsQueue) -> None:
        self._runs = runs
        self._queue = queue

    def proven(self, execution_id: str, token: str) -> Run:
        """The record of the run whose newest attempt has this token. Raises Unauthenticated, whatever is wrong."""
        names = split_execution_id(execution_id)
        run = self._runs.named(*names) if names else None
        if run is None or run.callback is None:
            raise Unauthenticated
        if not hmac.compare_digest(callback_hash(run.claim_token, token), run.callback.hash):
            raise Unauthenticated
        return run

    def goes_on(self, run: Run, progress: Mapping[str, Any], now: float) -> CalledBack:
        """The target works on, with its `progress`. A run that has ended tells it to stop."""
        assert run.callback
        until = min(now + run.callback.wait_s, run.started_at + MAX_CALLBACK_S)
        sign = {
            "lease_until": until,
            "expires_at": int(until) + run.callback.kept_s,
            "accepted_attempt": run.attempt,
            "progress": {**progress, "attempt": run.attempt, "at": now},
        }
        written = self._runs.tell(run, change(sign, add={"signs": 1}), now)
        if isinstance(written, MoveRefused):
            return CalledBack(written.run or run, stop=True)
        return CalledBack(written)

    def ends(self, run: Run, outcome: Outcome, now: float) -> CalledBack:
        """The target has ended its work. The same end again changes nothing. Raises Conflict: it ended otherwise."""
        if run.status == (SUCCEEDED if outcome.ok else FAILED):
            return CalledBack(run)
        report = outcome.to_item() | {"ok": outcome.ok, "permanent": outcome.permanent, "at": now}
        return CalledBack(self._report(run, convert(report, Report)))

    def _report(self, run: Run, report: Report) -> Run:
        """Write the end down, and send the message by which the executor ends the run. Raises Conflict.

        The same end again sends it again only if the message before may have been lost.
        """
        sign = {"reported_attempt": run.attempt, "report": to_builtins(report)}
        written = self._runs.tell(run, change(sign, add={"signs": 1}), report.at)
        if isinstance(written, MoveRefused):
            if written.run is None or not _is_same_report(written.run, run, report):
                status = written.run.status if written.run else "gone"
                raise Conflict(
                    f"run {run.run_name} of {run.job_id} is {status}, or has reported another end, "
                    "or its time is over"
                )
            written = written.run
            if not self._is_sent_again(written, report.at):
                return written
        assert run.callback
        self._queue.send([Execution.decode(run.callback.message)])
        return written

    def _is_sent_again(self, run: Run, now: float) -> bool:
        """Whether the message of the stored end is due again, and nobody else sends it."""
        assert run.report
        if run.status != RUNNING or now < run.report.at + SEND_AGAIN_AFTER_S * 2 ** (run.report.sends - 1):
            return False
        report = replace(run.report, sends=run.report.sends + 1)
        return self._runs.tell_again(run, change({"report": to_builtins(report)}, add={"signs": 1}))


def _is_same_report(stored: Run, run: Run, report: Report) -> bool:
    """Whether this end is written already: the answer to the request before may have been lost."""
    is_reported = stored.claim_token == run.claim_token and stored.reported_attempt == run.attempt
    return (
        is_reported and stored.report is not None and replace(stored.report, at=report.at, sends=1) == report
    )

"""A record lives longer than its waits, and stays below DynamoDB's item size; on every engine."""

from __future__ import annotations

import pytest
from msgspec import structs
from msgspec.structs import asdict

from common.planning.due_entry import Missed
from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.run import Attempt, Run
from common.runs.states import RETRYING
from common.storage.table import Table
from common.timing.schedule import EveryTiming, Schedule

MAX_ATTEMPTS_KEPT = 110
MAX_THROTTLES_KEPT = 10
UNSTARTED_KEPT_S = 2_592_000

MINUTELY = Schedule.of(EveryTiming(60, 0))
DUE = 1_795_230_900
FIRST = Execution("alice", "job", DUE, DUE, 1)
DAY_S = 86_400
# A target's longest texts, in characters that take the most bytes.
LOUD = Outcome(
    ok=False,
    error_type="\u20ac" * 500,
    error="\ud800\U0001f600" * 500,
    log_tail="\0\uffff" * 50_000,
    request_id="\x7f" * 5_000,
    retry_after_s=1e130,
)


@pytest.fixture
def runs(tables: dict[str, Table]) -> Runs:
    return Runs(tables["runs"])


def attempts(runs: Runs, table: Table, before: int, throttles: int, more: int) -> list[int]:
    """Add attempts after some that are stored directly; returns the numbers of the attempts in the record."""
    kept = [*range(1, min(throttles, MAX_THROTTLES_KEPT) + 1), *range(throttles + 1, before + 1)]
    ended = [Attempt(n, DUE, DUE, "failed", **LOUD.to_item()) for n in kept][-MAX_ATTEMPTS_KEPT:]
    if before:
        table.put(Run.of(FIRST, RETRYING, attempt=before, attempts=tuple(ended)).to_item())
    for n in range(before + 1, before + more + 1):
        claim = Claim(structs.replace(FIRST, attempt=n, throttles=throttles), f"m{n}", DUE + n, DUE + n + 30)
        assert runs.claim(claim) is None
        assert runs.finish(claim, LOUD, DUE + n + 1, DUE + n + 1)
    record = runs.get(FIRST)
    assert record
    texts = [text for kept in record.attempts for text in asdict(kept).values() if isinstance(text, str)]
    assert sum(len(text.encode()) for text in texts) < 200 * 1024
    return [attempt.attempt for attempt in record.attempts]


def test_whatever_a_target_said_it_is_recorded(runs: Runs, tables: dict[str, Table]) -> None:
    assert attempts(runs, tables["runs"], 0, 0, 2) == [1, 2]


@pytest.mark.parametrize("before", [MAX_ATTEMPTS_KEPT - 1, pytest.param(400, marks=pytest.mark.release)])
def test_of_many_attempts_the_newest_are_kept(runs: Runs, tables: dict[str, Table], before: int) -> None:
    kept = attempts(runs, tables["runs"], before, 0, 4)
    assert kept == list(range(before + 4 - MAX_ATTEMPTS_KEPT + 1, before + 5))


def test_a_hundred_attempts_and_the_first_throttled_ones_are_kept(
    runs: Runs, tables: dict[str, Table]
) -> None:
    kept = attempts(runs, tables["runs"], 117, 20, 3)
    assert kept == [*range(1, MAX_THROTTLES_KEPT + 1), *range(21, 121)]


def expires_at(runs: Runs) -> int:
    record = runs.get(FIRST)
    assert record
    return record.expires_at


def test_a_run_is_kept_until_it_is_over_however_far_away_its_next_attempt_is(runs: Runs) -> None:
    claim = Claim(FIRST, "m", DUE, DUE + 30, retention_s=DAY_S)
    runs.claim(claim)
    runs.finish(claim, Outcome(ok=False), DUE + 1, DUE + 14 * DAY_S)
    assert expires_at(runs) == DUE + 15 * DAY_S
    second = Claim(
        structs.replace(FIRST, attempt=2), "m", DUE + 14 * DAY_S, DUE + 14 * DAY_S + 30, retention_s=DAY_S
    )
    runs.claim(second)
    assert expires_at(runs) == DUE + 15 * DAY_S


def test_a_run_that_is_opened_again_is_kept_again(runs: Runs, tables: dict[str, Table]) -> None:
    claim = Claim(FIRST, "m", DUE, DUE + 30, retention_s=DAY_S)
    runs.claim(claim)
    runs.finish(claim, Outcome(ok=False), DUE + 1, None)
    # DynamoDB may take days to remove an expired item; until then it can be opened.
    assert runs.reopen(FIRST, DUE + 2 * DAY_S)
    assert expires_at(runs) > DUE + 3 * DAY_S


def test_a_cancellation_is_kept_until_its_time_is_past(runs: Runs, tables: dict[str, Table]) -> None:
    assert runs.cancel([FIRST], "not then", DUE - 60 * DAY_S)
    assert expires_at(runs) == DUE + UNSTARTED_KEPT_S
    assert runs.claim(Claim(FIRST, "m", DUE, DUE + 30)) is not None


def test_a_run_that_waits_for_another_is_kept_until_then(runs: Runs, tables: dict[str, Table]) -> None:
    later = structs.replace(FIRST, not_before_at=DUE + 14 * DAY_S)
    assert runs.queue(later, "waits", DUE) is None
    assert expires_at(runs) == DUE + 14 * DAY_S + UNSTARTED_KEPT_S


def test_where_the_last_missed_fire_time_has_a_record_the_others_have_one_of_their_own(runs: Runs) -> None:
    runs.cancel([FIRST], "cancelled by hand", DUE - 60)
    missed = Missed("alice", "job", 1, 12, DUE - 11 * 60, DUE, "none", MINUTELY)
    assert runs.record_missed(missed, DUE + 3_600)
    assert not runs.record_missed(missed, DUE + 7_200)
    cancelled, missed_record = runs.of_job("alice", "job", limit=10)
    assert (cancelled.reason, cancelled.skipped_count) == ("cancelled", 0)
    assert (missed_record.reason, missed_record.skipped_count) == ("missed", 11)
    assert (missed_record.skipped_from_at, missed_record.fire_at) == (DUE - 660, DUE - 60)


def test_what_has_run_is_not_counted_as_missed(runs: Runs) -> None:
    for fire_at in (DUE, DUE - 300, DUE - 660):
        runs.claim(Claim(structs.replace(FIRST, fire_at=fire_at), "m", DUE, DUE + 30))
    assert runs.record_missed(
        Missed("alice", "job", 1, 12, DUE - 11 * 60, DUE, "none", MINUTELY), DUE + 3_600
    )
    (record,) = (run for run in runs.of_job("alice", "job", limit=10) if run.reason == "missed")
    assert (record.skipped_count, record.skipped_from_at, record.fire_at) == (9, DUE - 600, DUE - 60)


def test_one_missed_fire_time_that_was_cancelled_needs_no_other_record(
    runs: Runs, tables: dict[str, Table]
) -> None:
    runs.cancel([FIRST], "cancelled by hand", DUE - 60)
    assert not runs.record_missed(Missed("alice", "job", 1, 1, DUE, DUE, "none", MINUTELY), DUE + 3_600)
    (record,) = runs.of_job("alice", "job", limit=10)
    assert not record.skipped_count

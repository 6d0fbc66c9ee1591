"""The run record: claims, finishing, and what is written once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from common.planning.due_entry import Missed
from common.planning.execution import Execution
from common.runs.claims import Claim
from common.runs.outcome import Outcome
from common.runs.records import Runs
from common.runs.states import DISPATCHED, RUNNING
from common.storage.table import Table
from common.timing.schedule import EveryTiming, Schedule

MINUTELY = Schedule.of(EveryTiming(60, 0))
DUE = 1_795_230_900
FIRST = Execution("alice", "job", DUE, DUE, 1)
FAILED = Outcome(ok=False, error_type="Boom", error="it went wrong")


def claim(message: str = "m1", started_at: float = DUE + 0.5, execution: Execution = FIRST) -> Claim:
    return Claim(execution, message, started_at, started_at + 30)


@pytest.fixture
def runs(tables: dict[str, Table]) -> Runs:
    return Runs(tables["runs"])


def status(runs: Runs) -> str:
    record = runs.get(FIRST)
    assert record
    return record.status


def taken_over(runs: Runs, claim: Claim, status: str = RUNNING) -> bool:
    """Whether the write takes over, also where the executor's decision was made on an older record."""
    record = runs.get(FIRST)
    assert record
    return runs.take_over(claim, status, record) is None


def test_one_claim_wins_and_the_loser_sees_who_was_first(runs: Runs) -> None:
    assert runs.claim(claim("m1")) is None
    refusal = runs.claim(claim("m2"))
    assert refusal and refusal.run
    record = refusal.run
    assert (record.claimed_by, record.status, record.lateness_s) == ("m1", "running", 0.5)


def test_a_claim_sent_twice_knows_its_own_write(runs: Runs) -> None:
    own_claim = claim()
    assert runs.claim(own_claim) is None
    assert runs.claim(own_claim) is None
    assert runs.claim(claim()) is not None  # the same message delivered twice is another claim


def test_a_running_attempt_is_taken_over_after_its_lease_by_whatever_message_comes(runs: Runs) -> None:
    runs.claim(claim("m1"))
    for message in ("m1", "m2"):
        assert not taken_over(runs, claim(message, DUE + 30))
    assert taken_over(runs, claim("m2", DUE + 40))


def test_a_dispatched_attempt_is_taken_over_by_its_own_message_alone(runs: Runs) -> None:
    runs.claim(claim("m1"), DISPATCHED)
    assert not taken_over(runs, claim("m1", DUE + 30), DISPATCHED)
    assert not taken_over(runs, claim("m2", DUE + 40), DISPATCHED)
    assert taken_over(runs, claim("m1", DUE + 40), DISPATCHED)


def test_a_finish_counts_once_and_knows_its_own_write(runs: Runs) -> None:
    own_claim = claim()
    runs.claim(own_claim)
    for _ in range(2):
        assert runs.finish(own_claim, FAILED, DUE + 2, DUE + 10)
    record = runs.get(FIRST)
    assert record
    assert (record.status, len(record.attempts), record.next_attempt_at) == ("retrying", 1, DUE + 10)
    assert not runs.finish(claim("m2"), Outcome(ok=True), DUE + 3, None)


def test_an_attempt_follows_the_one_before_it_only(runs: Runs) -> None:
    second = structs.replace(FIRST, attempt=2)
    assert runs.claim(claim(execution=second)) is not None
    own_claim = claim()
    runs.claim(own_claim)
    runs.finish(own_claim, FAILED, DUE + 2, DUE + 10)
    assert runs.claim(claim("m3", DUE + 10, structs.replace(FIRST, attempt=3))) is not None
    assert runs.claim(claim("m2", DUE + 10, second)) is None
    assert runs.claim(claim("m1")) is not None


def test_a_skip_never_overwrites(runs: Runs) -> None:
    assert runs.skip(FIRST, "paused", "why", DUE)
    assert not runs.skip(FIRST, "deleted", "why", DUE)
    assert runs.claim(claim()) is not None
    assert status(runs) == "skipped"


def test_a_run_that_waits_for_an_attempt_can_be_given_up(runs: Runs) -> None:
    own_claim = claim()
    runs.claim(own_claim)
    second = structs.replace(FIRST, attempt=2)
    assert not runs.give_up(second, "paused", "why", DUE + 5)
    runs.finish(own_claim, FAILED, DUE + 2, DUE + 10)
    assert runs.give_up(second, "paused", "why", DUE + 5)
    assert status(runs) == "failed"


def test_missed_fire_times_are_recorded_once(runs: Runs) -> None:
    missed = Missed("alice", "job", 1, 12, DUE - 11 * 60, DUE, "none", MINUTELY)
    assert runs.record_missed(missed, DUE + 3_600)
    assert not runs.record_missed(missed, DUE + 7_200)
    (record,) = runs.of_job("alice", "job", limit=10)
    assert (record.skipped_count, record.skipped_from_at, record.fire_at) == (12, DUE - 660, DUE)


def test_runs_are_listed_newest_first(runs: Runs) -> None:
    for n in range(5):
        runs.skip(structs.replace(FIRST, fire_at=DUE + n), "paused", "why", DUE)
    newest = runs.of_job("alice", "job", limit=2)
    assert [run.fire_at for run in newest] == [DUE + 4, DUE + 3]


@pytest.fixture
def inserting(engine: tuple[str, object], runs: Runs) -> Runs:
    if engine[0] == "moto":
        pytest.skip("moto's INSERT overwrites an item that exists")
    return runs


def test_a_claim_together_with_others_writes_what_a_claim_of_its_own_does(inserting: Runs) -> None:
    alone, together = claim("m1"), replace(claim("m1"), execution=structs.replace(FIRST, job_id="other"))
    assert inserting.claim(alone, DISPATCHED) is None
    assert inserting.claim_together([(together, DISPATCHED)]) == [True]
    own, other = inserting.get(alone.execution), inserting.get(together.execution)
    assert own and other
    assert other == structs.replace(own, job_id="other", claim_token=together.token)
    assert inserting.claim(together, DISPATCHED) is None  # its own


def test_of_many_claims_each_counts_by_itself(inserting: Runs) -> None:
    many = [claim("m1", execution=structs.replace(FIRST, fire_at=DUE + n)) for n in range(26)]
    assert inserting.claim(replace(many[3], message_id="m0", token="another")) is None
    assert inserting.claim_together([(new_claim, DISPATCHED) for new_claim in many]) == [
        n != 3 for n in range(26)
    ]
    record = inserting.get(many[3].execution)
    assert record and record.claimed_by == "m0"

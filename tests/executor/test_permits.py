"""What an execution does that finds no permit: a table of the pure decision, for overlap and concurrency keys."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from common.jobs.job import Job
from common.jobs.spec import Concurrency
from common.planning.execution import BACKFILL, Execution
from common.runs.claims import Claim
from common.runs.holders import Full, Lease, State
from common.storage import keys
from common.timing.schedule import EveryTiming, Schedule
from executor.admission import Skip
from executor.permits import limits_of, permits_of, without_permit
from tests.worlds import plain_job

LOOK_AFTER_S = 60
MAX_PLACES = 50

NOW = 1_800_000_000
EXECUTION = Execution("alice", "report", NOW, NOW, 1)
HELD = State({"report:other": Lease(NOW + 40, 1, "call")}, {})
GOING = Full(HELD, [])
IN_LINE = GOING._replace(has_place=True)
BEHIND = Full(HELD, ["report:third"])
ABOUT_TO_GO = Full(State({}, {}), ["report:third"])


def a_job(**fields: Any) -> Job:
    return plain_job("alice", "report", Schedule.of(EveryTiming(60, 0)), **fields)


def decided(job: Job, full: Full, execution: Execution = EXECUTION, now: float = NOW) -> str:
    (limit,) = limits_of(job, execution, now)
    decision = without_permit(job, execution, limit, full, now)
    if isinstance(decision, Skip):
        return f"{decision.reason}: {decision.detail}"
    looks = "is woken" if decision.until is None else f"waits {decision.until - int(now)}"
    return f"{looks}: {decision.detail}"


@pytest.mark.parametrize(
    ("overlap", "full", "decision"),
    [
        ("skip", GOING, "overlap: run other is still going"),
        ("skip", BEHIND, "overlap: run other is still going"),
        ("queue_one", IN_LINE, "is woken: run other is still going"),
        ("queue_one", BEHIND, "overlap: run other is still going, and run third waits for it already"),
        ("queue_one", ABOUT_TO_GO, "overlap: run third is still going, and run third waits for it already"),
    ],
)
def test_a_first_attempt_is_skipped_or_waits_in_line(overlap: str, full: Full, decision: str) -> None:
    assert decided(a_job(overlap=overlap), full) == decision


@pytest.mark.parametrize(("overlap", "places"), [("skip", 0), ("queue_one", 1)])
def test_overlap_is_one_permit_of_the_run(overlap: str, places: int) -> None:
    (limit,) = limits_of(a_job(overlap=overlap), EXECUTION, NOW)
    assert (limit.permits, limit.attempt, limit.places, limit.margin_s) == (1, 0, places, 0)


@pytest.mark.parametrize(
    "fields", [{"overlap": "skip"}, {"concurrency": Concurrency(key="crm", limit=3, when_full="skip")}]
)
@pytest.mark.parametrize(
    "execution", [structs.replace(EXECUTION, attempt=2), structs.replace(EXECUTION, trigger=BACKFILL)]
)
def test_a_later_attempt_and_a_backfills_run_wait_by_any_policy(
    fields: dict[str, Any], execution: Execution
) -> None:
    (limit,) = limits_of(a_job(**fields), execution, NOW)
    assert limit.places == MAX_PLACES
    in_line = "is woken: " if execution.attempt == 1 else f"waits {LOOK_AFTER_S + 1}: "
    assert decided(a_job(**fields), IN_LINE, execution).startswith(in_line)
    assert decided(a_job(**fields), BEHIND, execution).startswith(f"waits {LOOK_AFTER_S + 1}: ")


def test_a_key_skips_waits_or_has_waited_too_long() -> None:
    waits, skips = (
        a_job(concurrency=Concurrency(key="crm", limit=1, when_full=when_full, max_wait_s=1_000))
        for when_full in ("wait", "skip")
    )
    going = "1 run of the concurrency key crm is going, such as report:other"
    assert decided(skips, GOING) == f"concurrency: {going}"
    assert decided(waits, IN_LINE) == f"is woken: {going}; it waits"
    assert decided(waits, IN_LINE, now=NOW + 101) == f"waits 901: {going}; it waits"
    assert decided(waits, GOING, now=NOW + 1_001) == f"concurrency: {going}; it waited 1001 s for its turn"
    assert decided(waits, ABOUT_TO_GO._replace(has_place=True)).startswith(
        "is woken: other runs wait before it for the concurrency key crm"
    )


def test_without_a_place_it_looks_at_most_twenty_times_in_a_day() -> None:
    job = a_job(concurrency=Concurrency(key="crm", limit=1, max_wait_s=86_400))
    now, looks = float(NOW), 0
    while True:
        (limit,) = limits_of(job, EXECUTION, now)
        decision = without_permit(job, EXECUTION, limit, GOING, now)
        if isinstance(decision, Skip):
            break
        assert decision.until and decision.until > now
        now, looks = float(decision.until), looks + 1
    assert looks <= 20
    assert now - NOW == pytest.approx(86_400, abs=5)


def test_what_a_claim_holds_that_another_executor_took() -> None:
    claim = Claim(structs.replace(EXECUTION, attempt=3), "m", NOW, NOW + 40, concurrency_key="crm")
    assert permits_of(None, claim)[0][:3] == (keys.key_permits("alice", "crm"), claim.execution, 3)
    assert [permit.attempt for permit in permits_of(a_job(overlap="skip"), claim)] == [3, 0]
    assert permits_of(a_job(), Claim(EXECUTION, "m", NOW, NOW + 40)) == ()
    assert limits_of(a_job(), EXECUTION, NOW) == []

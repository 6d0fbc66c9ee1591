"""Expected against actual in random worlds: the due set is exactly what the jobs said, and nothing lacks a record.

Each explanation of an instant agrees with what happened there. `EXPECTED_WORLDS=5000 pytest …` plays more worlds.
"""

from __future__ import annotations

import math
import os
import random

import pytest

from common.history import expected_runs
from common.history.expected import CANCELLED, NO_RECORD, OVERDUE, TO_COME, InstantOutcome
from common.history.expected_runs import ExpectedQuery
from common.history.explain import NO_JOB, NOT_DUE, NOT_YET, UNKNOWN
from common.history.explain import PAUSED as PAUSED_CODE
from common.jobs.job import DELETED, PAUSED
from common.planning.execution import SCHEDULE
from common.timing.fires import fires
from common.timing.instants import DAY_S
from tests.history.random_worlds import BEGIN, RandomWorld, play
from tests.worlds import at

WORLDS = int(os.environ.get("EXPECTED_WORLDS", "100"))


@pytest.mark.long
@pytest.mark.parametrize("batch", range(4))
def test_the_due_set_is_what_the_jobs_said_and_each_instant_has_its_record(
    batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long after a change as ticks plan ahead, runs are read by name.
    monkeypatch.setattr(expected_runs, "SETTLED_S", 1_200)
    monkeypatch.setattr(expected_runs, "MAX_READ_BY_NAME", 100)
    for seed in range(batch, WORLDS, 4):
        played = play(seed)
        for job_id in played.log:
            check(played, job_id, seed)
        all_jobs_at_once(played, BEGIN)
        all_jobs_at_once(played, played.last_change() + 1_201)


def check(played: RandomWorld, job_id: str, seed: int) -> None:
    world, now = played.world, played.world.clock.now()
    end = math.floor(now) + 7_200
    page = played.expected.of_job(ExpectedQuery("alice", BEGIN, end, now, 30 * DAY_S, 10_000), job_id)
    where = f"seed {seed}, {job_id}"
    assert page.known_from_at <= BEGIN, where
    assert [outcome.fire_at for outcome in page.instants if outcome.is_due] == played.due(
        job_id, BEGIN, end
    ), where
    for outcome in page.instants:
        assert outcome.status not in (NO_RECORD, OVERDUE), (where, outcome)
        assert (outcome.status == TO_COME) == (outcome.due_at > now - 10 and outcome.run is None), (
            where,
            outcome,
        )
    shown = {outcome.run.run_name for outcome in page.instants if outcome.run}
    stored = {run["sk"] for run in world.run_items("alice", job_id) if run["trigger"] == SCHEDULE}
    assert shown == stored, where
    assert paged(played, job_id, end) == page.instants, where
    explained_as_it_was(played, job_id, page.instants, end)


def all_jobs_at_once(played: RandomWorld, start: int) -> None:
    """The list of all jobs has what the lists of its jobs have."""
    now = played.world.clock.now()
    query = ExpectedQuery("alice", start, math.floor(now) + 7_200, now, 30 * DAY_S, 10_000)
    pages, place = played.expected.of_tenant(query, None)
    assert place is None
    for page in pages:
        alone = played.expected.of_job(query, page.job_id)
        where = f"seed {played.seed}, {page.job_id}"
        assert [outcome for outcome in page.instants if outcome.is_due] == [
            outcome for outcome in alone.instants if outcome.is_due
        ], where
        # A cancellation of a fire time that the job no longer has is not read by name.
        left_over = [outcome for outcome in alone.instants if outcome not in page.instants]
        assert all(outcome.status == CANCELLED for outcome in left_over), where
        assert not left_over or start > BEGIN, where


def explained_as_it_was(
    played: RandomWorld, job_id: str, listed_outcomes: list[InstantOutcome], end: int
) -> None:
    """Each run and some instants between: the explanation agrees with the account, and names what kept it."""
    rng, now = random.Random(played.seed), played.world.clock.now()
    due, listed = (
        set(played.due(job_id, BEGIN, end)),
        {outcome.fire_at: outcome for outcome in listed_outcomes},
    )
    called = {
        at(context["fire_at"])
        for _, context in played.world.target.calls
        if context["job_id"] == job_id and context["trigger"] == SCHEDULE
    }
    changes = [int(since) for since, _ in played.log[job_id]]
    instants = rng.sample(sorted(listed), min(6, len(listed))) + rng.sample(changes, min(3, len(changes)))
    instants += [rng.randrange(BEGIN, end) for _ in range(4)]
    for instant in instants:
        query = ExpectedQuery("alice", instant, instant + 1, now, 30 * DAY_S)
        explanation = played.expected.explain(query, job_id, lambda job: [], lambda by: {}).explanation
        where = f"seed {played.seed}, {job_id}, {instant}: {explanation.text}"
        codes = {reason.code for reason in explanation.reasons}
        if instant in due:
            assert explanation.status == listed[instant].status, where
            continue
        assert explanation.status == NOT_DUE, where
        was = played.at(job_id, instant)
        if was is None or was.state == DELETED:
            assert codes == {NO_JOB}, where
        elif was.state == PAUSED:
            assert PAUSED_CODE in codes, where
        else:
            assert codes and not codes & {NO_JOB, PAUSED_CODE, UNKNOWN}, where
            only_not_yet = codes == {NOT_YET}
            fires_then = any(True for _ in fires(was.schedule, instant, instant + 1))
            assert fires_then == only_not_yet, where
        if instant in called:
            assert any(outcome.run for outcome in explanation.instants), where


def paged(played: RandomWorld, job_id: str, end: int) -> list[object]:
    """The same, a few at a time."""
    read: list[object] = []
    begin: int | None = BEGIN
    while begin is not None:
        now = played.world.clock.now()
        page = played.expected.of_job(ExpectedQuery("alice", begin, end, now, 30 * DAY_S, 7), job_id)
        read += page.instants
        begin = page.next_at
    return read

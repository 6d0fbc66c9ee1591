"""Expected against actual in random worlds: the due set is exactly what the jobs said, and nothing lacks a record."""

from __future__ import annotations

import math
import os

import pytest

from common.history.expected import NO_RECORD, OVERDUE, TO_COME
from common.planning.execution import SCHEDULE
from common.timing.instants import DAY_S
from tests.history.random_worlds import BEGIN, RandomWorld, play

WORLDS = int(os.environ.get("EXPECTED_WORLDS", "100"))


@pytest.mark.parametrize("batch", range(4))
def test_the_due_set_is_what_the_jobs_said_and_each_instant_has_its_record(batch: int) -> None:
    for seed in range(batch, WORLDS, 4):
        played = play(seed)
        for job_id in played.log:
            check(played, job_id, seed)


def check(played: RandomWorld, job_id: str, seed: int) -> None:
    w, now = played.w, played.w.clock.now()
    end = math.floor(now) + 7_200
    page = played.expected.of_job("alice", job_id, BEGIN, end, now, 30 * DAY_S, 10_000)
    where = f"seed {seed}, {job_id}"
    assert page.known_from_at <= BEGIN, where
    assert [one.fire_at for one in page.found if one.is_due] == played.due(job_id, BEGIN, end), where
    for one in page.found:
        assert one.status not in (NO_RECORD, OVERDUE), (where, one)
        assert (one.status == TO_COME) == (one.due_at > now - 10 and one.record is None), (where, one)
    shown = {one.record["sk"] for one in page.found if one.record}
    stored = {run["sk"] for run in w.run_items("alice", job_id) if run["trigger"] == SCHEDULE}
    assert shown == stored, where
    assert paged(played, job_id, end) == page.found, where


def paged(played: RandomWorld, job_id: str, end: int) -> list[object]:
    """The same, a few at a time."""
    found: list[object] = []
    begin: int | None = BEGIN
    while begin is not None:
        now = played.w.clock.now()
        page = played.expected.of_job("alice", job_id, begin, end, now, 30 * DAY_S, 7)
        found += page.found
        begin = page.next_at
    return found

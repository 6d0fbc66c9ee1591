"""Another version goes on from the tables and the queue of this one, whatever state a deployment found them in.

Each test plays one story. One version plays it up to a cut, another one goes on. What was called and what is recorded
must be what the present version alone does without a cut.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.upgrade.versions import AFTER, NEXT, ROOT, Version, checked_out
from tests.worlds import at, job

Story = list[list[Any]]
State = dict[str, Any]
END = "2026-11-21T04:40:00Z"
MAX_WRITES = 40
# Its payload has an item of its own.
LARGE = "x" * 5_000
UNTIL = {"end_at": "2026-11-21T03:45:00Z"}
FIVE = {"max_attempts": 5, "base_s": 60}
# The second attempt waits for half an hour at least, which is longer than SQS delays a message.
LONG = {"max_attempts": 3, "base_s": 3600, "cap_s": 3600}


def every(cron: str, **fields: Any) -> dict[str, Any]:
    return job(cron=cron, **UNTIL, **fields)


# Everything, up to the tick of 3:28. At its end a minute of calls is in the queue, retries
# wait, a backfill is under way, a run is dispatched, and the due table holds an entry that nobody can read.
STORY: Story = [
    ["attribute", "pack_from", 5],
    ["put", "alice", "large", every("3-59/10 * * * *", payload=LARGE)],
    ["put", "alice", "report", every("*/3 * * * *")],
    ["put", "alice", "seconds", every("*/30 27-32 3 * * *")],
    ["put", "alice", "flaky", every("*/4 * * * *", retry=FIVE)],
    ["put", "alice", "flaky-long", every("26 3 * * *", retry=LONG)],
    ["put", "alice", "fails", every("25 3 * * *", retry={"max_attempts": 3, "base_s": 200})],
    ["put", "alice", "alone", every("* * * * *", overlap="skip")],
    ["put", "alice", "event", every("*/2 * * * *", invocation="Event")],
    ["put", "alice", "jitter", every("*/6 * * * *", jitter_s=200)],
    ["put", "alice", "hours", job(every="7m", anchor="2026-11-21T03:01:00Z", **UNTIL)],
    ["put", "alice", "once", job(at="2026-11-21T03:41:00Z")],
    ["put", "alice", "soon", job(at="2026-11-21T03:29:30Z")],
    ["put", "alice", "paused", every("* * * * *")],
    ["store", "pause", "alice", "paused"],
    ["put", "alice", "deleted", every("* * * * *")],
    ["put", "alice", "catches-up", every("*/5 * * * *", catch_up="all")],
    *(["put", "bob", f"crowd-{n}", every("*/15 * * * *")] for n in range(12)),
    ["until", "2026-11-21T03:27:10Z"],
    ["store", "delete", "alice", "deleted"],
    ["backfill", "alice", "report", at("2026-11-21T01:00:00Z"), at("2026-11-21T01:30:00Z"), 2, "past"],
    ["manual", "run_now", "alice", "paused", "by-hand"],
    ["until", "2026-11-21T03:27:59Z"],
]

# What is cut off after each of its writes, with the last step that the same or another version does again or not.
CUTS: dict[str, list[Any]] = {
    "tick": ["tick"],
    "execution": ["next_message"],
    "registration": ["put", "carol", "new", every("*/2 * * * *")],
    "change": ["put", "alice", "report", every("1-59/3 * * * *")],
    "deletion": ["store", "delete", "alice", "seconds"],
    "run by hand": ["manual", "run_now", "alice", "report", "cut"],
}


@pytest.fixture(scope="module")
def present() -> Iterator[Version]:
    version = Version(ROOT)
    yield version
    version.close()


@pytest.fixture(scope="module")
def versions(present: Version, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Version]]:
    """This version, the next one, and the one after it."""
    made_up = {
        release.name: Version(checked_out(release, tmp_path_factory.mktemp(release.name)))
        for release in (NEXT, AFTER)
    }
    yield {"present": present, **made_up}
    for version in made_up.values():
        version.close()


class Switch(NamedTuple):
    """From which version, to which."""

    before: Version
    after: Version


@pytest.fixture(scope="module", params=["present next", "next present", "next after", "after next"])
def switch(request: pytest.FixtureRequest, versions: dict[str, Version]) -> Switch:
    """A deployment, or the way back from it."""
    before, after = request.param.split()
    return Switch(versions[before], versions[after])


_known: dict[str, State] = {}


def of_the_present(present: Version, steps: Story) -> Outcome:
    """What the present version does alone."""
    text = json.dumps(steps)
    if text not in _known:
        _known[text] = played(present, [*steps, *THE_END])
    return outcome(_known[text])


def played(version: Version, steps: Story, state: State | None = None) -> State:
    version.play("load", state or NOTHING)
    for step in steps:
        version.play(*step)
    state: State = version.play("dump")
    return state


NOTHING: State = {"now": at("2026-11-21T03:12:00Z"), "tables": {}, "messages": [], "calls": [], "shares": []}
THE_END: Story = [["until", END]]


def records(state: State) -> dict[str, str]:
    """What each run's record says."""
    return {
        f"{run['pk']['S']}#{run['sk']['S']}": run["status"]["S"] + run.get("reason", {}).get("S", "")
        for run in state["tables"]["runs"]
        if "status" in run
    }


Outcome = tuple[set[str], dict[str, str]]


def outcome(state: State) -> Outcome:
    """The executions that were called, and the records."""
    return {call["execution_id"] for _, call in state["calls"]}, records(state)


def doubled(state: State) -> list[Any]:
    """The attempts that were called more than once."""
    calls = Counter((call["execution_id"], call["attempt"]) for _, call in state["calls"])
    return [attempt for attempt, times in calls.items() if times > 1]


@pytest.mark.parametrize("moment", ["03:28:30", "03:29:45", "03:30:00", "03:31:10"])
def test_a_deployment_between_two_ticks_loses_and_doubles_nothing(
    switch: Switch, present: Version, moment: str
) -> None:
    steps = STORY
    state = played(switch.before, [*steps, ["until", f"2026-11-21T{moment}Z"]])
    assert state["messages"]
    end = played(switch.after, THE_END, state)
    assert outcome(end) == of_the_present(present, steps)
    assert doubled(end) == []
    assert end["messages"] == []


@pytest.mark.parametrize("name", CUTS)
def test_work_that_was_cut_off_is_finished_by_the_other_version(
    switch: Switch, present: Version, name: str
) -> None:
    """After each write of the step: the rest of it happens, or nothing of it has happened."""
    steps, step = STORY, CUTS[name]
    accepted = [of_the_present(present, [*steps, *more]) for more in ([], [step])]
    start = played(switch.before, steps)
    for writes in range(MAX_WRITES):
        switch.before.play("load", start)
        switch.before.play(*steps[0])  # a loaded state has the defaults again
        died = switch.before.play("cut", writes, *step)
        end = played(switch.after, THE_END, switch.before.play("dump"))
        result = outcome(end)
        assert result in accepted, f"after {writes} writes: {difference(result, accepted[-1])}"
        # An executor that dies between a call and its record: the call is made again (docs/runs.md).
        assert len(doubled(end)) <= (1 if name == "execution" else 0), (writes, doubled(end))
        if not died:
            return
    raise AssertionError(f"{name} makes more than {MAX_WRITES} writes")


# Few enough entries that the window of 3:30 has several shares.
DIVIDE: Story = [["divide", 10]]


@pytest.mark.parametrize("planned", [0, 2], ids=["no share is planned", "two shares are planned"])
@pytest.mark.parametrize("shares_are_lost", [False, True], ids=["messages wait", "messages are lost"])
def test_a_divided_window_is_planned_by_the_other_versions_planners(
    switch: Switch, present: Version, planned: int, shares_are_lost: bool
) -> None:
    steps = STORY
    state = played(switch.before, [*steps, *DIVIDE, ["tick"], ["plan", planned]])
    assert state["shares"]
    state["shares"] = [] if shares_are_lost else state["shares"]
    end = played(switch.after, [*DIVIDE, *THE_END], state)
    assert outcome(end) == of_the_present(present, steps)
    assert doubled(end) == []
    assert end["shares"] == []


def test_a_group_set_aside_by_one_version_is_repaired_by_the_other(switch: Switch, present: Version) -> None:
    broken = [
        *STORY,
        ["garbage"],
        ["damage", "report"],
        ["until", "2026-11-21T03:31:10Z"],
    ]
    repaired: Story = [["store", "pause", "alice", "report"], ["store", "resume", "alice", "report"]]
    state = played(switch.before, broken)
    assert {item["sk"]["S"] for item in state["tables"]["due"] if item["pk"]["S"] == "QUARANTINE"} >= {
        "group#lunar|full#0",
        "entry#alice#report",
    }
    end = played(switch.after, [*repaired, *THE_END], state)
    assert outcome(end) == of_the_present(present, [*broken, *repaired])
    assert "2026-11-21T03:42:00Z" in {
        call["fire_at"] for _, call in end["calls"] if call["job_id"] == "report"
    }


def test_a_blocked_target_stays_blocked_and_is_released_by_the_other_version(
    switch: Switch, present: Version
) -> None:
    blocked = every("* * * * *")
    blocked["target"]["arn"] += "-2"
    broken = [
        *STORY,
        ["put", "alice", "blocked", blocked],
        ["block", "block", blocked["target"]["arn"], "down"],
        ["until", "2026-11-21T03:31:10Z"],
    ]
    released: Story = [
        ["until", "2026-11-21T03:36:30Z"],
        ["block", "release", blocked["target"]["arn"]],
    ]
    end = played(switch.after, [*released, *THE_END], played(switch.before, broken))
    assert outcome(end) == of_the_present(present, [*broken, *released])
    statuses = {key: status for key, status in records(end).items() if key.startswith("alice#blocked#")}
    assert {statuses[f"alice#blocked#20261121T03{minute}00Z"] for minute in (30, 33, 36)} == {
        "skippedblocked"
    }
    assert statuses["alice#blocked#20261121T034000Z"] == "succeeded"


def test_a_tenant_that_is_half_removed_is_removed(switch: Switch) -> None:
    steps: Story = [
        ["deletion", "create", "dora"],
        *(["put", "dora", f"job-{n}", every("* * * * *")] for n in range(4)),
        ["until", "2026-11-21T03:20:30Z"],
        ["deletion", "begin", "dora"],
        ["until", "2026-11-21T03:26:30Z"],
        ["deletion", "move_on", "dora", 2],
    ]
    state = played(switch.before, steps)
    assert 0 < sum(item["pk"]["S"] == "dora" for item in state["tables"]["jobs"]) < 8
    rest: Story = [["deletion", "move_on", "dora", 100]] * 5
    end = played(switch.after, [["until", "2026-11-21T03:35:00Z"], *rest], state)
    assert [item for item in end["tables"]["runs"] if item["pk"]["S"].startswith("dora")] == []
    assert [
        item["sk"]["S"]
        for item in end["tables"]["jobs"]
        if item["pk"]["S"] == "dora" and item["sk"]["S"].startswith("JOB#")
    ] == []
    assert [item for item in end["tables"]["due"] if item["sk"]["S"].startswith("dora#")] == []


def difference(actual: Outcome, expected: Outcome) -> str:
    """For the message of a failed test."""
    (calls, runs), (wanted_calls, wanted_runs) = actual, expected
    changed = sorted(runs.items() ^ wanted_runs.items())
    return f"not called: {sorted(wanted_calls - calls)[:5]}, called: {sorted(calls - wanted_calls)[:5]}, {changed[:8]}"

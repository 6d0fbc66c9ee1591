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

from tests.upgrade.versions import RELEASES, ROOT, Release, Version, checked_out
from tests.worlds import at, job

Story = list[list[Any]]
State = dict[str, Any]
END = "2026-11-21T04:40:00Z"
MAX_WRITES = 40
# Its payload has an item of its own, which earlier versions do not know: they refuse to call it.
LARGE = "x" * 5_000
UNTIL = {"end_at": "2026-11-21T03:45:00Z"}
FIVE = {"max_attempts": 5, "base_s": 60}
# The second attempt waits for half an hour at least, which is longer than SQS delays a message.
LONG = {"max_attempts": 3, "base_s": 3600, "cap_s": 3600}


def every(cron: str, **fields: Any) -> dict[str, Any]:
    return job(cron=cron, **UNTIL, **fields)


# Everything that both versions know, up to the tick of 3:28. At its end a minute of calls is in the queue, retries
# wait, a backfill is under way, a run is dispatched, and the due table holds an entry that nobody can read.
STORY: Story = [
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


@pytest.fixture(scope="module", params=RELEASES, ids=[release.name for release in RELEASES])
def release(request: pytest.FixtureRequest) -> Release:
    release: Release = request.param
    return release


@pytest.fixture(scope="module")
def former(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Version]:
    version = Version(checked_out(release, tmp_path_factory.mktemp("release")))
    yield version
    version.close()


class Switch(NamedTuple):
    """From which version, to which; `follower` is that one if it is an earlier one."""

    before: Version
    after: Version
    follower: Release | None


@pytest.fixture(scope="module", params=["forwards", "backwards"])
def switch(request: pytest.FixtureRequest, release: Release, former: Version, present: Version) -> Switch:
    if request.param == "forwards":
        return Switch(former, present, None)
    return Switch(present, former, release)


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


def story_for(follower: Release | None = None) -> Story:
    """The story before a version that may lack something goes on (docs/upgrading.md has the same)."""
    packs = follower is None or follower.reads_packs_and_wakes
    waits = follower is None or follower.keeps_long_waits
    steps = STORY if waits else [step for step in STORY if "flaky-long" not in step]
    steps = (
        steps if follower else [["put", "alice", "large", every("3-59/10 * * * *", payload=LARGE)], *steps]
    )
    return [["attribute", "pack_from", 5 if packs else 0], *steps]


@pytest.mark.parametrize("moment", ["03:28:30", "03:29:45", "03:30:00", "03:31:10"])
def test_a_deployment_between_two_ticks_loses_and_doubles_nothing(
    switch: Switch, present: Version, moment: str
) -> None:
    steps = story_for(switch.follower)
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
    steps, step = story_for(switch.follower), CUTS[name]
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
    steps = story_for(switch.follower)
    state = played(switch.before, [*steps, *DIVIDE, ["tick"], ["plan", planned]])
    assert state["shares"]
    state["shares"] = [] if shares_are_lost else state["shares"]
    end = played(switch.after, [*DIVIDE, *THE_END], state)
    assert outcome(end) == of_the_present(present, steps)
    assert doubled(end) == []
    assert end["shares"] == []


def test_a_group_set_aside_by_one_version_is_repaired_by_the_other(
    switch: Switch, release: Release, present: Version
) -> None:
    if not release.sets_aside:
        pytest.skip(f"{release.name} sets nothing aside")
    broken = [
        *story_for(switch.follower),
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


def test_a_held_target_stays_held_and_is_released_by_the_other_version(
    switch: Switch, release: Release, present: Version
) -> None:
    if not release.has_holds:
        pytest.skip(f"{release.name} holds nothing: docs/upgrading.md says what it calls again")
    held = every("* * * * *")
    held["target"]["arn"] += "-2"
    broken = [
        *story_for(switch.follower),
        ["put", "alice", "held", held],
        ["hold", "hold", held["target"]["arn"], "down"],
        ["until", "2026-11-21T03:31:10Z"],
    ]
    released: Story = [
        ["until", "2026-11-21T03:36:30Z"],
        ["hold", "release", held["target"]["arn"]],
    ]
    end = played(switch.after, [*released, *THE_END], played(switch.before, broken))
    assert outcome(end) == of_the_present(present, [*broken, *released])
    statuses = {key: status for key, status in records(end).items() if key.startswith("alice#held#")}
    assert {statuses[f"alice#held#20261121T03{minute}00Z:1"] for minute in (30, 33, 36)} == {"skippedheld"}
    assert statuses["alice#held#20261121T034000Z:1"] == "succeeded"


# What 0.1.0 does not know. It may ignore it, and must not call at a time that is wrong.
SPREAD = every("*/5 * * * *")
SPREAD["schedule"]["spread_s"] = 50
UNKNOWN: Story = [
    ["put", "erin", "aws", every("0/4 * * * ? *", dialect="eventbridge")],
    ["put", "erin", "aws-weekday", every("* * ? * 7 *", dialect="eventbridge")],
    ["put", "erin", "paced", every("*/5 * * * *", pace={"per_second": 1, "tolerance_s": 60})],
    ["put", "erin", "spread", SPREAD],
    ["put", "erin", "ends", every("*/5 * * * *", after_completion="delete", on_crash="fail")],
    ["put", "erin", "large", every("*/5 * * * *", catch_up="all", payload=LARGE)],
]


def test_there_and_back_again_what_the_earlier_version_does_not_know_is_never_called_wrongly(
    release: Release, former: Version, present: Version
) -> None:
    steps = [*story_for(release), *UNKNOWN]
    expected, _ = of_the_present(present, steps)
    state = played(present, [*steps, ["until", "2026-11-21T03:29:00Z"]])
    before = len(state["calls"])
    state = played(former, [["until", "2026-11-21T03:36:30Z"]], state)
    assert not [context for _, context in state["calls"][before:] if context["job_id"] == "large"]
    end = played(present, THE_END, state)
    called, recorded = outcome(end)
    set_aside = {execution_id for execution_id in expected if ":aws" in execution_id}
    assert called <= expected
    assert expected - called <= set_aside
    assert {execution_id for execution_id in called & set_aside if ":20261121T034" in execution_id}, (
        "they are called again afterwards"
    )
    assert doubled(end) == []
    assert set(recorded.values()) <= {"succeeded", "dispatched", "failed", "skippedpaused", "skippeddeleted"}


def test_a_tenant_that_is_half_removed_is_removed(former: Version, present: Version) -> None:
    steps: Story = [
        ["deletion", "create", "dora"],
        *(["put", "dora", f"job-{n}", every("* * * * *")] for n in range(4)),
        ["until", "2026-11-21T03:20:30Z"],
        ["deletion", "begin", "dora"],
        ["until", "2026-11-21T03:26:30Z"],
        ["deletion", "move_on", "dora", 2],
    ]
    state = played(former, steps)
    assert 0 < sum(item["pk"]["S"] == "dora" for item in state["tables"]["jobs"]) < 8
    rest: Story = [["deletion", "move_on", "dora", 100]] * 5
    end = played(present, [["until", "2026-11-21T03:35:00Z"], *rest], state)
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

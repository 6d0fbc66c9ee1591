"""`completion: callback`: the target accepts the work, and tells its end later. `cancel` has a target stop."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from common.errors import Conflict, InvalidInput, Unauthenticated
from common.runs.callbacks import CalledBack
from common.runs.outcome import STOPPED, Outcome
from executor.targets import Kind
from tests.worlds import API_URL, World, at, job

MAX_CALLBACK_S = 1_209_600

KEY = ("alice", "job")
DUE = "2026-11-21T03:15:00Z"
OK, BOOM = Outcome(ok=True), Outcome(ok=False, error_type="Boom", error="it broke")
HOUR_S = 3_600


class Target:
    """A target that accepts the work, and calls back with what the event told it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.events: list[Mapping[str, Any]] = []
        world.target.answer = self._take

    def _take(self, event: Mapping[str, Any]) -> Outcome:
        self.events.append(json.loads(json.dumps(event))["minute8"])
        return OK

    def record(self, nth: int = -1) -> dict[str, Any]:
        event = self.events[nth]
        return self.world.callbacks.proven(event["execution_id"], event["callback"]["token"])

    def goes_on(self, nth: int = -1, **progress: Any) -> CalledBack:
        return self.world.callbacks.goes_on(self.record(nth), progress, self.world.clock.now())

    def ends(self, outcome: Outcome = OK, nth: int = -1) -> CalledBack:
        return self.world.callbacks.ends(self.record(nth), outcome, self.world.clock.now())


@pytest.fixture
def target(world: World) -> Target:
    return Target(world)


def begin(world: World, **fields: Any) -> None:
    """The job's run has begun, and its target has accepted the work."""
    timing = {} if "cron" in fields else {"at": DUE}
    world.registry.create(*KEY, job(**timing, completion="callback", **fields))
    world.run_until(DUE)


def run_of(world: World) -> dict[str, Any]:
    return world.run_items(*KEY)[-1]


def test_a_run_goes_on_until_its_target_has_called_back(world: World, target: Target) -> None:
    begin(world)
    assert target.events[0]["callback"]["url"] == f"{API_URL}/v1/runs/alice:job:20261121T031500Z/callback"
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running"]
    target.ends(Outcome(ok=True, log_tail="12 rows"))
    world.deliver()
    run = run_of(world)
    assert (run["status"], run["finished_at"], run["attempts"][0]["log_tail"]) == (
        "succeeded",
        at("2026-11-21T03:40:00Z"),
        "12 rows",
    )
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert (world.statuses(*KEY), len(world.sqs), len(target.events)) == (["succeeded"], 0, 1)


def test_a_failure_follows_the_retry_policy_with_a_token_of_its_own(world: World, target: Target) -> None:
    begin(world, retry={"max_attempts": 2, "base_s": 60})
    target.ends(BOOM)
    world.run_until("2026-11-21T03:20:00Z")
    assert [event["attempt"] for event in target.events] == [1, 2]
    with pytest.raises(Unauthenticated):
        target.ends(OK, nth=0)
    target.ends(BOOM)
    world.deliver()
    run = run_of(world)
    assert (run["status"], [attempt["error_type"] for attempt in run["attempts"]]) == (
        "failed",
        ["Boom", "Boom"],
    )
    assert [kind for kind, _ in world.events] == ["Run Failed"]


def test_a_permanent_failure_is_not_tried_again(world: World, target: Target) -> None:
    begin(world)
    target.ends(replace(BOOM, permanent=True))
    world.deliver()
    assert world.statuses(*KEY) == ["failed"]


@pytest.mark.parametrize("wait_s", [60, HOUR_S, 7 * 86_400])
def test_without_a_callback_the_attempt_times_out(world: World, target: Target, wait_s: int) -> None:
    begin(world, callback_timeout_s=wait_s, retry={"max_attempts": 1})
    world.clock.move_to(at(DUE) + wait_s - 1)
    world.tick()
    world.deliver()
    assert world.statuses(*KEY) == ["running"]
    world.clock.move_to(at(DUE) + wait_s + 2)
    world.tick()
    world.deliver()
    assert (run_of(world)["status"], run_of(world)["attempts"][0]["error_type"]) == (
        "failed",
        "CallbackTimedOut",
    )
    with pytest.raises(Conflict):
        target.ends(OK)


def test_signs_of_life_extend_the_time_and_show_the_progress(world: World, target: Target) -> None:
    begin(world, callback_timeout_s=600)
    for minute in range(9):
        world.clock.move_to(at(DUE) + 300 * (minute + 1))
        answer = target.goes_on(percent=10 * minute, text=f"step {minute}")
        assert not answer.stop
        world.tick()
        world.deliver()
    run = run_of(world)
    assert (run["status"], run["progress"]["percent"], run["progress"]["text"]) == ("running", 80, "step 8")
    assert run["lease_until"] == at(DUE) + 300 * 9 + 600
    world.clock.move_to(at(DUE) + 300 * 9 + 602)
    world.tick()
    world.deliver()
    assert run_of(world)["status"] == "retrying"


def test_signs_of_life_extend_it_to_a_bound(world: World, target: Target) -> None:
    begin(world, callback_timeout_s=7 * 86_400)
    started_at = run_of(world)["started_at"]
    for day in (6, 12):
        world.clock.move_to(at(DUE) + day * 86_400)
        target.goes_on()
    run = run_of(world)
    assert run["lease_until"] == started_at + MAX_CALLBACK_S
    assert run["expires_at"] > run["lease_until"]


def test_an_end_before_the_answer_of_the_call_counts(world: World, target: Target) -> None:
    """The target is quicker than its answer; the message of the end comes first."""

    def quick(event: Mapping[str, Any]) -> Outcome:
        target._take(event)
        target.ends(OK)
        world.deliver()
        assert world.statuses(*KEY) == ["succeeded"]
        return OK

    world.target.answer = quick
    begin(world)
    world.run_until("2026-11-21T06:00:00Z", ticks=True)
    assert (world.statuses(*KEY), len(target.events), len(world.sqs)) == (["succeeded"], 1, 0)


def test_a_call_that_fails_has_failed_whatever_was_promised(world: World, target: Target) -> None:
    world.target.answer = lambda event: replace(BOOM, permanent=True)
    begin(world)
    assert world.statuses(*KEY) == ["failed"]


def test_the_same_end_twice_is_one_and_another_is_refused(world: World, target: Target) -> None:
    begin(world)
    target.ends(OK)
    target.ends(OK)
    with pytest.raises(Conflict):
        target.ends(BOOM)
    world.deliver()
    assert target.ends(OK).run.status == "succeeded"
    with pytest.raises(Conflict):
        target.ends(BOOM)
    assert target.goes_on().stop
    assert [kind for kind, _ in world.events] == []


@pytest.mark.parametrize("execution_id", ["alice:job:20261121T031500Z", "alice:none:20261121T031500Z", "x"])
def test_nobody_calls_back_without_the_token(world: World, target: Target, execution_id: str) -> None:
    begin(world)
    stored = json.dumps(run_of(world), default=str)
    assert target.events[0]["callback"]["token"] not in stored
    for token in ("", "x", run_of(world)["claim_token"], run_of(world)["callback"]["hash"]):
        with pytest.raises(Unauthenticated):
            world.callbacks.proven(execution_id, token)


def test_a_token_of_one_run_proves_nothing_about_another(world: World, target: Target) -> None:
    world.registry.create(*KEY, job(cron="15-16 3 * * *", completion="callback"))
    world.registry.create("bob", "job", job(cron="15 3 * * *", completion="callback"))
    world.run_until("2026-11-21T03:16:30Z")
    tokens = {event["execution_id"]: event["callback"]["token"] for event in target.events}
    assert len(set(tokens.values())) == len(tokens) == 3
    for execution_id, token in tokens.items():
        for other in set(tokens) - {execution_id}:
            with pytest.raises(Unauthenticated):
                world.callbacks.proven(other, token)


def test_a_run_that_awaits_its_callback_overlaps(world: World, target: Target) -> None:
    begin(world, cron="15-30/5 3 * * *", overlap="skip", callback_timeout_s=600)
    world.run_until("2026-11-21T03:22:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running", "skipped(overlap)"]
    target.goes_on()
    world.run_until("2026-11-21T03:26:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running", *["skipped(overlap)"] * 2]
    target.ends(OK)
    world.run_until("2026-11-21T03:31:00Z", ticks=True)
    assert world.statuses(*KEY) == ["succeeded", *["skipped(overlap)"] * 2, "running"]


def test_the_run_that_waits_goes_on_when_the_target_calls_back(world: World, target: Target) -> None:
    begin(world, cron="15-20/5 3 * * *", overlap="queue_one")
    world.run_until("2026-11-21T03:25:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running", "queued"]
    target.ends(OK)
    world.deliver()
    assert world.statuses(*KEY) == ["succeeded", "running"]


@pytest.mark.parametrize("change", ["pause", "delete"])
def test_a_paused_or_deleted_job_still_hears_how_its_run_ended(
    world: World, target: Target, change: str
) -> None:
    begin(world)
    getattr(world.store, change)(*KEY)
    target.ends(OK)
    world.deliver()
    assert world.statuses(*KEY) == ["succeeded"]


def test_a_cancelled_run_ends_at_once_and_its_target_is_told_with_its_next_sign(
    world: World, target: Target
) -> None:
    begin(world, cron="15-20/5 3 * * *", overlap="queue_one")
    world.run_until("2026-11-21T03:20:30Z", ticks=True)
    world.manual.cancel("alice", run_of_first(world), "wrong data")
    assert world.statuses(*KEY) == ["failed", "queued"]
    assert target.goes_on(nth=0).stop
    world.deliver()
    assert world.statuses(*KEY) == ["failed", "running"]
    assert world.run_items(*KEY)[0]["attempts"][0]["error"] == "stopped by hand: wrong data"
    assert target.goes_on(nth=0).stop
    assert world.events == []  # nobody hears of a failure


def run_of_first(world: World) -> str:
    return f"alice:job:{world.run_items(*KEY)[0]['sk']}"


def test_a_cancelled_run_whose_target_is_silent_has_ended(world: World, target: Target) -> None:
    begin(world, callback_timeout_s=600)
    world.manual.cancel("alice", run_of_first(world), "")
    assert (run_of(world)["status"], run_of(world)["attempts"][0]["error_type"]) == ("failed", STOPPED)
    world.run_until("2026-11-21T04:00:00Z", ticks=True)
    assert len(target.events) == 1


def test_what_was_cancelled_cannot_succeed_any_more(world: World, target: Target) -> None:
    begin(world)
    world.manual.cancel("alice", run_of_first(world), "")
    with pytest.raises(Conflict, match="is failed"):
        target.ends(OK)
    world.deliver()
    assert world.statuses(*KEY) == ["failed"]


def test_what_was_handed_over_and_cannot_be_told_is_not_cancelled(world: World) -> None:
    world.registry.create(*KEY, job(at=DUE, invocation="Event"))
    refused: list[str] = []

    def slow(event: Mapping[str, Any]) -> Outcome:
        with pytest.raises(Conflict, match="nothing can stop it"):
            world.manual.cancel("alice", run_of_first(world), "")
        refused.append("")
        return OK

    world.target.answer = slow
    world.run_until(DUE)
    assert refused


class Machine:
    """Step Functions, as far as it starts and stops executions."""

    def __init__(self) -> None:
        self.stopped: list[str] = []

    def __call__(self, target: Any, event: Any, tasks: Any, timeout_s: float) -> Outcome:
        self.stopped.append(target["arn"])
        return OK


@pytest.mark.parametrize("completion", ["answer", "callback"])
def test_an_execution_of_step_functions_is_stopped(
    world: World, monkeypatch: pytest.MonkeyPatch, completion: str
) -> None:
    machine, target = Machine(), Target(world)
    monkeypatch.setattr("executor.targets.aws_services.stop", machine)
    kind = Kind(world.target)
    world.executor = replace(world.executor, kinds={"step_functions": kind})
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:nightly"
    definition = job(at=DUE, completion=completion) | {"target": {"kind": "step_functions", "arn": arn}}
    world.registry.create(*KEY, definition)
    world.run_until(DUE)
    assert len(target.events) == 1
    world.manual.cancel("alice", run_of_first(world), "too late")
    world.deliver()
    run = run_of(world)
    assert (run["status"], run["attempts"][0]["error"]) == ("failed", "stopped by hand: too late")
    assert machine.stopped == [arn]
    with pytest.raises(Conflict):
        world.manual.cancel("alice", run_of_first(world), "")


def test_tasks_of_ecs_are_stopped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[object] = []
    monkeypatch.setattr(
        "executor.targets.aws_services.stop", lambda target, event, tasks, *rest: stopped.append(tasks) or OK
    )
    task = "arn:aws:ecs:us-east-1:123456789012:task/jobs/1"
    world.target.answer = lambda event: replace(OK, started=(task,))
    world.executor = replace(world.executor, kinds={"aws_operation": Kind(world.target)})
    role = "arn:aws:iam::123456789012:role/tasks"
    operation = {"kind": "aws_operation", "arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "role_arn": role}
    payload = {"taskDefinition": "report"}
    world.registry.create(*KEY, job(at=DUE, payload=payload) | {"target": operation})
    world.run_until(DUE)
    world.manual.cancel("alice", run_of_first(world), "")
    world.deliver()
    assert (world.statuses(*KEY), stopped) == (["failed"], [(task,)])


def test_why_an_execution_could_not_be_stopped_is_in_its_run(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = Outcome(ok=False, error_type="AccessDeniedException", error="not authorized")
    monkeypatch.setattr("executor.targets.aws_services.stop", lambda *rest: refused)
    world.executor = replace(world.executor, kinds={"step_functions": Kind(world.target)})
    arn = "arn:aws:states:us-east-1:123456789012:stateMachine:nightly"
    world.registry.create(*KEY, job(at=DUE) | {"target": {"kind": "step_functions", "arn": arn}})
    world.run_until(DUE)
    world.manual.cancel("alice", run_of_first(world), "")
    world.deliver()
    run = run_of(world)
    assert (run["status"], run["stop_problem"]) == ("failed", "AccessDeniedException: not authorized")
    assert len(world.sqs) == 0


SQS = {"kind": "sqs", "arn": "arn:aws:sqs:us-east-1:123456789012:jobs"}
HTTP = {"kind": "http", "url": "https://hooks.example.com/x"}


@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ({"callback_timeout_s": 60}, "callback_timeout_s"),
        ({"completion": "callback", "callback_timeout_s": 59}, "callback_timeout_s"),
        ({"completion": "callback", "callback_timeout_s": 7 * 86_400 + 1}, "callback_timeout_s"),
        ({"completion": "callback", "target": {**SQS, "envelope": False}, "payload": {"a": 1}}, "completion"),
        ({"completion": "callback", "callback_timeout_s": 60}, ""),
        ({"completion": "callback", "callback_timeout_s": 7 * 86_400}, ""),
        ({"completion": "callback", "target": {**HTTP, "envelope": False}}, ""),
        ({"completion": "callback", "target": SQS, "overlap": "skip", "alert": {"longer_than_s": 60}}, ""),
        ({"target": SQS, "overlap": "skip"}, "overlap"),
    ],
)
def test_where_a_job_may_have_callbacks(world: World, fields: dict[str, Any], refused: str) -> None:
    definition = job(at=DUE) | fields
    if refused:
        with pytest.raises(InvalidInput) as error:
            world.registry.create(*KEY, definition)
        assert error.value.field == refused
    else:
        world.registry.create(*KEY, definition)
        assert world.store.get(*KEY).spec.completion == "callback"


def test_the_same_end_told_fifty_times_is_one_message(world: World, target: Target) -> None:
    begin(world)
    before = len(world.sqs)
    for _ in range(50):
        target.ends(OK)
    assert len(world.sqs) == before + 1
    world.deliver()
    assert world.statuses(*KEY) == ["succeeded"]


def test_the_same_end_told_again_later_is_sent_again_but_seldom(world: World, target: Target) -> None:
    """Whoever was to send its message may have died. One who tells it all the time sends few."""
    begin(world, callback_timeout_s=HOUR_S)
    target.ends(OK)
    ended_at, before = world.clock.now(), len(world.sqs)
    world.clock.sleep(2)
    target.ends(OK)
    assert len(world.sqs) == before + 1
    for _ in range(600):
        world.clock.sleep(1)
        target.ends(OK)
    assert len(world.sqs) < before + 12
    world.deliver()
    assert (world.statuses(*KEY), run_of(world)["finished_at"]) == (["succeeded"], ended_at)

"""Durable functions: each attempt starts one durable execution, whatever dies, and its run follows it to the end."""

from __future__ import annotations

import io
import json
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError
from msgspec import structs

from common.errors import InvalidInput
from common.planning.execution import parse_execution_id
from common.storage import keys
from common.storage.table import Query
from executor import started as started_module
from executor.targets import kinds, lambda_function
from tests.executor.contexts import refused
from tests.faults.wire import Killed
from tests.worlds import World, at, job

ALIAS = "arn:aws:lambda:us-east-1:123456789012:function:report:live"
KEY = ("alice", "job")
DUE = "2026-11-21T03:15:00Z"


@dataclass
class FakeLambda:
    """Lambda, as far as it has durable executions: a name with the same payload is started once."""

    world: World
    # By function and name.
    by_name: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    starts: int = 0
    # Raised by the next calls, each once: before the execution begins, and after.
    before: list[BaseException] = field(default_factory=list)
    after: list[BaseException] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)

    def invoke(self, **request: Any) -> dict[str, Any]:
        assert request["InvocationType"] == "Event"
        if self.before:
            raise self.before.pop()
        key, payload = (request["FunctionName"], request["DurableExecutionName"]), request["Payload"]
        if key not in self.by_name:
            self.starts += 1
            arn = f"{key[0]}/durable-execution/{key[1]}/1"
            self.by_name[key] = {"DurableExecutionArn": arn, "payload": payload, "Status": "RUNNING"}
        if self.after:
            raise self.after.pop()
        if self.by_name[key]["payload"] != payload:
            raise refused("DurableExecutionAlreadyStartedException", 409)
        arn = self.by_name[key]["DurableExecutionArn"]
        return {
            "Payload": io.BytesIO(b""),
            "DurableExecutionArn": arn,
            "ResponseMetadata": {"RequestId": "r"},
        }

    def get_durable_execution(self, **request: Any) -> dict[str, Any]:
        self.looks.append(self.world.clock.now())
        if self.before:
            raise self.before.pop()
        arns = {each["DurableExecutionArn"]: each for each in self.by_name.values()}
        return arns[request["DurableExecutionArn"]]

    def list_durable_executions_by_function(self, **request: Any) -> dict[str, Any]:
        key = f"{request['FunctionName']}:{request['Qualifier']}", request["DurableExecutionName"]
        return {"DurableExecutions": [self.by_name[key]] if key in self.by_name else []}

    def stop_durable_execution(self, **request: Any) -> None:
        self.end("STOPPED", Error=request["Error"])

    @property
    def newest(self) -> dict[str, Any]:
        return list(self.by_name.values())[-1]

    def end(self, status: str, **fields: Any) -> None:
        ended_at = datetime.fromtimestamp(self.world.clock.now(), UTC)
        self.newest.update({"Status": status, "EndTimestamp": ended_at, **fields})


@pytest.fixture
def functions(world: World, monkeypatch: pytest.MonkeyPatch) -> FakeLambda:
    fake = FakeLambda(world)
    for module in (started_module, lambda_function):
        monkeypatch.setattr(module, "client", lambda *_: fake)
    world.executor = replace(world.executor, kinds=kinds(lambda *_: pytest.fail("no endpoint")), stage="test")
    return fake


def register(world: World, job_id: str = "job", **fields: Any) -> None:
    target = {"kind": "lambda", "arn": ALIAS, "invocation": "Event", "durable": True}
    timing = {} if "cron" in fields else {"at": DUE}
    world.registry.create("alice", job_id, job(**timing, **fields) | {"target": target})


def run_of(world: World) -> dict[str, Any]:
    return world.run_items(*KEY)[-1]


def test_a_run_follows_its_durable_execution_to_the_end(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until("2026-11-21T05:14:50Z", ticks=True)
    assert world.statuses(*KEY) == ["running"]
    functions.end("SUCCEEDED", Result='{"rows": 12}')
    world.run_until("2026-11-21T06:15:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], run["finished_at"]) == ("succeeded", at("2026-11-21T05:14:50Z"))
    assert run["attempts"][0]["log_tail"] == '{"rows": 12}'
    assert (functions.starts, len(world.sqs)) == (1, 0)
    # A look comes late by an eighth of the duration.
    assert len(functions.looks) < 50


@pytest.mark.parametrize("status", ["SUCCEEDED", "FAILED"])
@pytest.mark.parametrize("is_own", [False, True])
def test_what_a_function_says_that_knows_secrets_is_not_kept(
    world: World, functions: FakeLambda, is_own: bool, status: str
) -> None:
    world.secrets.put("alice", "token", "p4ssword", world.clock.now())
    payload = {"key": "secret://token"}
    if is_own:
        register(world, cron="0 9 * * *", retry={"max_attempts": 1})
        world.manual.run_now(*KEY, "by-hand", json.dumps(payload))
    else:
        register(world, payload=payload, retry={"max_attempts": 1})
    world.run_until(DUE, ticks=True)
    texts = {"Result": "got p4ssword", "Error": {"ErrorType": "Boom", "ErrorMessage": "no key p4ssword"}}
    functions.end(status, **texts)
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], "p4ssword" in str(run)) == (status.lower(), False)
    assert "not kept" in str(run) or status == "SUCCEEDED"


def test_a_day_of_waiting_costs_about_a_hundred_looks(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until("2026-11-22T03:15:00Z", ticks=True)
    first_day = len(functions.looks)
    world.run_until("2026-11-23T03:15:00Z", ticks=True)
    assert (world.statuses(*KEY), first_day < 130) == (["running"], True)
    assert len(functions.looks) - first_day < 100


def test_an_attempt_begins_after_the_known_end_of_the_one_before(world: World, functions: FakeLambda) -> None:
    register(world, retry={"max_attempts": 2, "base_s": 10})
    world.run_until("2026-11-21T03:16:00Z", ticks=True)
    assert functions.starts == 1
    functions.end("FAILED", Error={"ErrorType": "Boom", "ErrorMessage": "it broke"})
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    assert functions.starts == 2
    functions.end("TIMED_OUT")
    world.run_until("2026-11-21T04:20:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], [attempt["error_type"] for attempt in run["attempts"]]) == (
        "failed",
        ["Boom", "TimedOut"],
    )
    assert len(functions.by_name) == 2
    assert all(len(name) == 51 for _, name in functions.by_name)


@pytest.mark.parametrize("kill", ["before", "after"])
def test_a_dead_executor_starts_nothing_twice(world: World, functions: FakeLambda, kill: str) -> None:
    register(world)
    getattr(functions, kill).append(Killed())
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])


@pytest.mark.parametrize("edit", [False, True])
def test_a_takeover_after_an_edit_of_the_payload_counts_as_started(
    world: World, functions: FakeLambda, edit: bool
) -> None:
    register(world, payload={"rows": 1})
    functions.after.append(Killed())
    world.run_until(DUE)
    if edit:
        world.registry.patch(*KEY, {"payload": {"rows": 2}})
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running"]
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])


def test_an_answer_that_was_lost_is_found_by_the_attempts_name(world: World, functions: FakeLambda) -> None:
    register(world)
    functions.after.append(ReadTimeoutError(endpoint_url="https://lambda"))
    world.run_until("2026-11-21T03:16:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running"]
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])


def test_a_call_that_never_arrived_is_tried_again(world: World, functions: FakeLambda) -> None:
    register(world, retry={"max_attempts": 2, "base_s": 10})
    functions.before.append(ReadTimeoutError(endpoint_url="https://lambda"))
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    assert (functions.starts, run_of(world)["attempts"][0]["error_type"]) == (1, "NotStarted")


def test_a_throttled_start_costs_no_attempt(world: World, functions: FakeLambda) -> None:
    register(world, retry={"max_attempts": 1})
    functions.before.append(refused("TooManyRequestsException", 429))
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])


def test_who_may_not_look_says_so_and_looks_again(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until(DUE)
    functions.end("SUCCEEDED")
    functions.before.append(refused("AccessDeniedException", 403))
    world.run_until("2026-11-21T03:15:17Z")
    run = run_of(world)
    assert (run["status"], run["look_problem"]) == (
        "running",
        "AccessDeniedException: said AccessDeniedException",
    )
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert world.statuses(*KEY) == ["succeeded"]


def test_nobody_looks_longer_than_a_durable_execution_can_last(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until(DUE)
    world.clock.move_to(at(DUE) + 367 * 86_400)
    functions.before = [refused("AccessDeniedException", 403)] * 20
    world.tick()
    world.deliver()
    runs = world.table("runs").with_expired()  # nobody has looked for a year
    run = list(runs.query(Query(keys.runs_of_job(*KEY))))[-1]
    assert (run["status"], run["attempts"][0]["error_type"], functions.looks) == ("failed", "EndUnknown", [])


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize(
    "durable",
    [None, {"attempt": 1, "name": "m8", "function": ""}, {"attempt": 1, "name": "", "function": "a"}],
)
def test_a_record_that_does_not_say_where_its_execution_is_ends(
    world: World, functions: FakeLambda, durable: dict[str, Any] | None, is_cancelled: bool
) -> None:
    """Each look raised, and the message became a dead letter."""
    register(world)
    world.run_until(DUE)
    run = {key: value for key, value in run_of(world).items() if key != "started_arns"}
    world.table("runs").put(run | {"durable": durable})
    if is_cancelled:
        world.manual.cancel("alice", "alice:job:20261121T031500Z", "")
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    run = run_of(world)
    error_type = "StoppedByHand" if is_cancelled else "EndUnknown"
    assert (run["status"], run["attempts"][0]["error_type"]) == ("failed", error_type)
    assert ("does not name" in str(run), len(world.sqs)) == (bool(durable) or not is_cancelled, 0)


def test_a_cancelled_run_stops_its_durable_execution(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    world.manual.cancel("alice", "alice:job:20261121T031500Z", "wrong month")
    world.run_until("2026-11-21T03:21:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], run["attempts"][0]["error_type"]) == ("failed", "StoppedByHand")
    assert functions.newest["Error"] == {"ErrorType": "StoppedByHand", "ErrorMessage": "wrong month"}
    world.run_until("2026-11-21T05:21:00Z", ticks=True)
    assert (functions.starts, len(world.sqs)) == (1, 0)


def test_a_cancelled_run_says_that_its_durable_execution_had_ended(
    world: World, functions: FakeLambda
) -> None:
    register(world)
    world.run_until("2026-11-21T05:14:50Z", ticks=True)
    functions.end("SUCCEEDED")
    world.manual.cancel("alice", "alice:job:20261121T031500Z", "wrong month")
    world.run_until("2026-11-21T05:16:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], run["stop_problem"]) == (
        "failed",
        "the durable execution had ended before: SUCCEEDED",
    )
    assert functions.newest["Status"] == "SUCCEEDED"


@pytest.mark.parametrize("is_cancelled", [False, True])
@pytest.mark.parametrize("is_lost", [False, True])
def test_a_run_ends_whose_job_has_another_kind_of_target_since(
    world: World, functions: FakeLambda, monkeypatch: pytest.MonkeyPatch, is_lost: bool, is_cancelled: bool
) -> None:
    regions = []

    def client(service: str, target: dict[str, Any], *_: Any) -> FakeLambda:
        regions.append(target["arn"].split(":")[3])
        return functions

    register(world)
    if is_lost:
        functions.after.append(ReadTimeoutError(endpoint_url="https://lambda"))
    world.run_until(DUE)
    monkeypatch.setattr(started_module, "client", client)
    world.registry.put(*KEY, job(at=DUE) | {"target": {"kind": "http", "url": "https://example.com/report"}})
    functions.end("SUCCEEDED")
    if is_cancelled:
        world.manual.cancel("alice", "alice:job:20261121T031500Z", "")
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    run = run_of(world)
    assert (functions.starts, len(world.sqs), set(regions)) == (1, 0, {"us-east-1"})
    if is_cancelled:
        assert run["stop_problem"].endswith("SUCCEEDED")
    else:
        assert run["status"] == "succeeded"


def test_a_start_whose_answer_was_lost_is_looked_for_at_its_own_function(
    world: World, functions: FakeLambda
) -> None:
    """The job has another durable function since: a look there found nothing, and a second attempt began."""
    register(world, retry={"max_attempts": 2, "base_s": 10})
    functions.after.append(ReadTimeoutError(endpoint_url="https://lambda"))
    world.run_until(DUE)
    other = {"kind": "lambda", "arn": f"{ALIAS}-2", "invocation": "Event", "durable": True}
    world.registry.patch(*KEY, {"target": other})
    world.run_until("2026-11-21T03:20:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])


OTHER = {"kind": "lambda", "arn": f"{ALIAS}-2", "invocation": "Event", "durable": True}
ENDPOINT = {"kind": "http", "url": "https://example.com/report"}


@pytest.mark.parametrize("target", [OTHER, ENDPOINT])
def test_a_dead_executor_and_an_edit_start_nothing_twice(
    world: World, functions: FakeLambda, target: dict[str, Any]
) -> None:
    """The takeover called the function that the job has since, beside the first one's execution."""
    register(world)
    functions.after.append(Killed())
    world.run_until(DUE)
    world.registry.put(*KEY, job(at=DUE) | {"target": target})
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])


def test_after_a_dead_executor_and_an_edit_the_other_function_is_called_if_the_first_never_was(
    world: World, functions: FakeLambda
) -> None:
    register(world, retry={"max_attempts": 1})
    functions.before.append(Killed())
    world.run_until(DUE)
    world.registry.patch(*KEY, {"target": OTHER})
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])
    assert next(iter(functions.by_name))[0] == OTHER["arn"]


@pytest.mark.parametrize("rest", ["pause", "on_crash"])
def test_an_execution_whose_executor_died_is_followed_and_not_given_up(
    world: World, functions: FakeLambda, rest: str
) -> None:
    """A second attempt began beside it, or the run failed while it went on."""
    register(world, **({"on_crash": "fail"} if rest == "on_crash" else {}))
    functions.after.append(Killed())
    world.run_until(DUE)
    if rest == "pause":
        world.store.pause(*KEY)
        world.run_until("2026-11-21T03:20:00Z", ticks=True)
        world.store.resume(*KEY)
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["running"])
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])


def test_an_attempt_whose_answer_was_lost_does_not_end_with_the_attempt_before(
    world: World, functions: FakeLambda
) -> None:
    """The look saw the first attempt's execution, and a third began beside the second."""
    register(world, retry={"max_attempts": 3, "base_s": 10})
    world.run_until(DUE)
    functions.end("FAILED", Error={"ErrorType": "Boom", "ErrorMessage": "it broke"})
    functions.after.append(ReadTimeoutError(endpoint_url="https://lambda"))
    world.run_until("2026-11-21T03:15:17Z")
    functions.before.clear()
    world.run_until("2026-11-21T03:40:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (2, ["running"])
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T03:50:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (2, ["succeeded"])


@pytest.mark.parametrize("is_dead", [False, True])
def test_the_run_of_a_deleted_job_ends_and_says_that_its_execution_goes_on(
    world: World, functions: FakeLambda, is_dead: bool
) -> None:
    register(world)
    functions.after += [Killed()] if is_dead else []
    world.run_until(DUE)
    world.store.delete(*KEY)
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    (attempt,) = run_of(world)["attempts"]
    assert (attempt["error_type"], functions.newest["Status"]) == ("deleted", "RUNNING")
    assert attempt["error"].endswith("; its durable execution goes on")


def test_an_execution_that_somebody_else_stopped_is_not_tried_again(
    world: World, functions: FakeLambda
) -> None:
    register(world, retry={"max_attempts": 3})
    world.run_until(DUE)
    functions.end("STOPPED", Error={"ErrorType": "X", "ErrorMessage": "by an operator"})
    world.run_until("2026-11-21T03:30:00Z", ticks=True)
    run = run_of(world)
    assert (run["status"], run["attempts"][0]["error"], functions.starts) == ("failed", "by an operator", 1)


def test_runs_do_not_overlap_however_long_the_execution_goes_on(world: World, functions: FakeLambda) -> None:
    register(world, cron="15 * * * *", overlap="skip")
    world.run_until("2026-11-21T12:00:00Z", ticks=True)
    assert world.statuses(*KEY) == ["running", *["skipped(overlap)"] * 8]
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T12:16:00Z", ticks=True)
    assert world.statuses(*KEY)[-1] == "running"


@pytest.mark.parametrize("nth", range(20))
def test_copies_of_a_message_start_nothing_and_end_nothing_twice(
    world: World, functions: FakeLambda, nth: int
) -> None:
    """A queue delivers any message again, at any instant."""
    rng = random.Random(nth)
    register(world)
    for _ in range(12):
        world.run_until(datetime.fromtimestamp(world.clock.now() + 120, UTC).isoformat())
        body = rng.choice(world.sqs.bodies)
        world.sqs.send_message_batch("queue", [{"Id": "0", "MessageBody": body, "DelaySeconds": 0}])
    functions.end("SUCCEEDED")
    world.run_until("2026-11-21T05:00:00Z", ticks=True)
    assert (functions.starts, world.statuses(*KEY)) == (1, ["succeeded"])
    assert (len(run_of(world)["attempts"]), len(world.sqs)) == (1, 0)


@pytest.mark.parametrize(
    ("target", "field"),
    [
        ({"invocation": "RequestResponse"}, "target.invocation"),
        ({"arn": ALIAS.removesuffix(":live")}, "target.arn"),
        ({"arn": ALIAS.replace(":live", ":$LATEST")}, "target.arn"),
    ],
)
def test_what_a_durable_function_needs_is_said(world: World, target: dict[str, Any], field: str) -> None:
    definition = {"kind": "lambda", "arn": ALIAS, "invocation": "Event", "durable": True} | target
    with pytest.raises(InvalidInput) as raised:
        world.registry.create(*KEY, job(at=DUE) | {"target": definition})
    assert raised.value.field == field


def test_a_durable_function_calls_nobody_back(world: World, functions: FakeLambda) -> None:
    with pytest.raises(InvalidInput, match="Lambda itself tells"):
        register(world, completion="callback")


def test_a_name_is_of_stage_execution_and_attempt(world: World, functions: FakeLambda) -> None:
    register(world)
    world.run_until(DUE)
    (((_, name), started),) = functions.by_name.items()
    body = json.loads(started["payload"])["minute8"]
    assert (body["durable_name"], "outcome_token" in body) == (name, False)
    execution = parse_execution_id("alice", body["execution_id"])
    assert started_module.name_of("test", structs.replace(execution, attempt=1)) == name
    assert started_module.name_of("prod", structs.replace(execution, attempt=1)) != name
    assert started_module.name_of("test", structs.replace(execution, attempt=2)) != name

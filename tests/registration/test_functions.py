"""What Lambda says of a job's function, where it may be read: its timeout, and what the target has to say of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError
from msgspec import structs

from common.errors import InvalidInput
from common.registration.functions import Functions
from common.registration.registry import Registry
from common.runs.outcome import Outcome
from tests.worlds import ARN, World, job, with_spec

DENIED = ClientError(
    {"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "GetFunctionConfiguration"
)
NO_ANSWER = Outcome(ok=False, error_type="TimedOut", error="no answer within 3 s", unanswered=True)


class Lambda:
    """Answers GetFunctionConfiguration, or refuses it."""

    def __init__(self, answer: Any, arn: str = ARN) -> None:
        self.answer, self.asked, self.arn = answer, 0, arn

    def get_function_configuration(self, FunctionName: str) -> dict[str, Any]:
        assert FunctionName == self.arn
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if isinstance(self.answer, dict) else {"Timeout": self.answer}


def registry(world: World, functions: Lambda) -> Registry:
    read = Functions(lambda: functions, world.clock)
    limits = replace(world.registry.limits, function_timeout_s=read.timeout_s, check_function=read.check)
    return replace(world.registry, limits=limits)


def test_a_function_of_12_s_is_waited_for_and_not_for_15_minutes(world: World) -> None:
    world.target.answer = lambda event: NO_ANSWER
    definition = job(at="2026-11-21T03:15:00Z", overlap="skip", timeout_s=3, retry={"base_s": 1})
    registry(world, Lambda(12)).create("alice", "job", definition)
    assert world.store.get("alice", "job").function_timeout_s == 12
    world.run_until("2026-11-21T03:20:00Z")
    first, second, third = (called_at for called_at, _ in world.target.calls)
    assert 12 <= second - first <= 40
    assert 12 <= third - second <= 40


@pytest.mark.parametrize(
    "refusal", [DENIED, EndpointConnectionError(endpoint_url="https://lambda"), "soon", None, 0]
)
def test_what_cannot_be_read_is_not_known(world: World, refusal: Any) -> None:
    functions = Lambda(refusal)
    stored = registry(world, functions).create("alice", "job", job(every="1h", overlap="skip"))
    assert (stored.function_timeout_s, stored.work_s >= 900, functions.asked) == (0, True, 1)
    assert "function_timeout_s" not in stored.to_item()


def test_a_timeout_is_kept_where_others_wait_for_the_run(world: World) -> None:
    for n, fields in enumerate(({}, {"overlap": "skip", "invocation": "Event", "completion": "callback"})):
        stored = registry(world, Lambda(12)).create("alice", f"job-{n}", job(every="1h", **fields))
        assert stored.function_timeout_s == 0


ISOLATES = {"Timeout": 12, "TenancyConfig": {"TenantIsolationMode": "PER_TENANT"}}


@pytest.mark.parametrize(("function", "isolates"), [(ISOLATES, True), ({"Timeout": 12}, False)])
def test_a_target_says_whether_its_function_isolates_tenants(
    world: World, function: dict[str, Any], isolates: bool
) -> None:
    definition = job(every="1h")
    registered = registry(world, Lambda(function))
    wrong, right = (
        {**definition, "target": {**definition["target"], "tenant_isolation": value}}
        for value in (not isolates, isolates)
    )
    with pytest.raises(InvalidInput) as raised:
        registered.create("alice", "job", wrong)
    assert (raised.value.field, raised.value.accepted) == (
        "target.tenant_isolation",
        "true" if isolates else "false",
    )
    registered.create("alice", "job", right)


def test_a_target_that_is_durable_needs_a_durable_function(world: World) -> None:
    alias = f"{ARN}:live"
    target = {"kind": "lambda", "arn": alias, "invocation": "Event", "durable": True}
    definition = job(every="1h") | {"target": target}
    with pytest.raises(InvalidInput, match="not durable"):
        registry(world, Lambda({"Timeout": 12}, alias)).create("alice", "job", definition)
    registry(world, Lambda({"DurableConfig": {"ExecutionTimeout": 60}}, alias)).create(
        "alice", "job", definition
    )


def test_what_lambda_refuses_to_show_is_registered_as_it_is_written(world: World) -> None:
    definition = job(every="1h")
    target = {**definition["target"], "tenant_isolation": True}
    registry(world, Lambda(DENIED)).create("alice", "job", definition | {"target": target})


def test_an_answer_is_known_for_ten_minutes(world: World) -> None:
    functions = Lambda(12)
    registered = registry(world, functions)
    for n in range(3):
        registered.create("alice", f"job-{n}", job(every="1h", overlap="skip"))
    assert functions.asked == 1
    world.clock.sleep(601)
    registered.create("alice", "later", job(every="1h", overlap="skip"))
    assert functions.asked == 2


@pytest.mark.parametrize(
    ("target", "fields", "function_timeout_s", "work_s"),
    [
        ({"kind": "lambda"}, {}, 12, 27),
        ({"kind": "lambda"}, {}, 0, 915),
        ({"kind": "http"}, {}, 0, 90),
        ({"kind": "http"}, {"completion": "callback"}, 0, 915),
        ({"kind": "sqs"}, {}, 0, 915),
    ],
)
def test_how_long_the_work_of_a_call_can_go_on(
    world: World, target: dict[str, str], fields: dict[str, Any], function_timeout_s: int, work_s: int
) -> None:
    """Of an endpoint that answers a minute more than was waited for; else as long as a function of Lambda may run."""
    registered = world.registry.create("alice", "job", job(every="1h", timeout_s=30))
    changed = with_spec(registered, target=target, **fields)
    assert structs.replace(changed, function_timeout_s=function_timeout_s).work_s == work_s

"""What Minute8 does in AWS for a tenant beside its calls: nothing to what it may not call, or what is Minute8's own."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from common.errors import InvalidInput
from common.planning.execution import Execution
from common.registration import registry
from common.runs.run import Durable
from common.tenants.tenant import TenantRules
from executor import run_end
from executor import started as started_module
from executor.run_end import DeadLetters
from executor.started import NOT_ALLOWED, GoesOn, Started
from executor.targets import aws_services
from tests.manual_clock import ManualClock
from tests.stand_ins import AnyTenant
from tests.worlds import World, job, with_spec

HERE = "us-east-1:123456789012"
EXECUTION = Execution("alice", "job", 1_795_000_000, 1_795_000_000, 1)
OTHERS = ["arn:aws:*:*:*:*:others", "arn:aws:*:*:*:others"]


class NoTenant:
    """The tenant was removed."""

    def rules(self, tenant: str, now: float) -> None:
        return None


# The name of the resource, and the rules of its tenant.
REFUSED = pytest.mark.parametrize(
    ("name", "rules"),
    [
        ("reports", AnyTenant(TenantRules(allowed_targets=OTHERS))),
        ("minute8-prod", AnyTenant()),
        ("reports", NoTenant()),
    ],
    ids=["not allowed", "minute8's own", "no tenant"],
)


@pytest.fixture(autouse=True)
def nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(*_: object) -> None:
        raise AssertionError("a request was sent")

    monkeypatch.setattr(aws_services, "stop", sent)
    monkeypatch.setattr(started_module, "client", sent)
    monkeypatch.setattr(run_end, "client", sent)


@REFUSED
def test_nothing_is_stopped(world: World, name: str, rules: Any) -> None:
    target = {"kind": "step_functions", "arn": f"arn:aws:states:{HERE}:stateMachine:{name}"}
    stored = with_spec(world.registry.create("alice", "job", job(every="1h")), target=target)
    record: Any = SimpleNamespace(durable_execution=None, started_arns=[])
    assert Started(rules, ManualClock(0)).stop(stored, EXECUTION, record) == NOT_ALLOWED


@REFUSED
def test_no_durable_execution_is_looked_at_or_stopped(name: str, rules: Any) -> None:
    called = Durable(1, "attempt", f"arn:aws:lambda:{HERE}:function:{name}:live")
    record: Any = SimpleNamespace(durable_execution=called, started_at=0.0, started_arns=[], stop=None)
    durables = Started(rules, ManualClock(0))
    assert durables.stop(None, EXECUTION, record) == NOT_ALLOWED
    assert durables.look(None, EXECUTION, record) == GoesOn(NOT_ALLOWED)


@REFUSED
def test_no_dead_letter_is_sent(world: World, name: str, rules: Any) -> None:
    queue = f"arn:aws:sqs:{HERE}:{name}"
    stored = with_spec(world.registry.create("alice", "job", job(every="1h")), dead_letter=queue)
    runs = Mock()
    dead_letters = DeadLetters(runs, rules, {}, Mock(), Mock(), Mock(), ManualClock(0))
    assert dead_letters.send(stored, EXECUTION, "Error", "it failed") == "NotAllowed"
    assert queue in runs.note_dead_letter.call_args.args[1]


@REFUSED
def test_no_job_is_stored(name: str, rules: Any) -> None:
    queue, known = f"arn:aws:sqs:{HERE}:{name}", rules.rules("alice", 0) or TenantRules()
    with pytest.raises(InvalidInput):
        registry.check_allowed({"kind": "sqs", "arn": queue}, known)
    with pytest.raises(InvalidInput) as refused:
        registry._check_dead_letter(queue, known)
    assert refused.value.field == "dead_letter"

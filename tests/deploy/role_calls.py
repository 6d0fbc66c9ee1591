"""The AWS calls of each function while tests play flows, and the grants that they need."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import wraps
from types import ModuleType
from typing import Any, NamedTuple

import pytest

from common.platform.dead_letters import REGISTRATIONS
from executor.completion import Outcomes
from minute8.api import handler as api
from minute8.notifier.notifier import Notifier
from scheduler import handler, removal
from scheduler.planner import SharePlanner
from scheduler.tick import Scheduler
from tests import worlds
from tests.api import scheduler_client
from tests.api.alarm_board import AlarmBoard
from tests.api.conftest import open_office
from tests.api.dead_letters import LetterBox
from tests.api.test_registrations import RefusedQueue, make_rule
from tests.flows import test_export
from tests.flows.test_outcomes import Destination
from tests.notices.conftest import make_stage
from tests.planning import test_shares
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.stand_ins import Calls, PlanningMessages, PublishedEvents, SimulatedQueue
from tests.worlds import World, open_world

# Where each function begins: its handler, or what its handler calls in the tests' worlds.
ENTRIES = (
    ("Scheduler", Scheduler, "tick"),
    ("Scheduler", handler, "handle"),
    ("Scheduler", worlds.World, "delete_ended"),
    ("Scheduler", worlds.World, "round"),
    ("Planner", SharePlanner, "plan"),
    ("Planner", removal, "run_alone"),
    ("Executor", worlds, "execute_batch"),
    ("Outcomes", Outcomes, "complete"),
    ("Notifier", Notifier, "round"),
    ("Exporter", test_export.Platform, "go"),
    ("Api", api, "handle"),
)
_ONE_ITEM = {
    "get_item": "GetItem",
    "put_item": "PutItem",
    "update_item": "UpdateItem",
    "delete_item": "DeleteItem",
}
_BATCHES = {"batch_get_item": "BatchGetItem", "batch_write_item": "BatchWriteItem"}
# A transaction needs the permissions of its parts.
_TRANSACTION_ACTIONS = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
EXPORT_BUCKET = "arn:${AWS::Partition}:s3:::${runsExport}"
EXPORTED = f"{EXPORT_BUCKET}/minute8-${{sls:stage}}/*"
_OTHERS = (
    (SimulatedQueue, "send_message_batch", "sqs:SendMessage", "ExecutionsQueue"),
    (SimulatedQueue, "get_queue_attributes", "sqs:GetQueueAttributes", "ExecutionsQueue"),
    (SimulatedQueue, "change_message_visibility_batch", "sqs:ChangeMessageVisibility", "ExecutionsQueue"),
    (test_shares.Queue, "send_message_batch", "sqs:SendMessage", "PlanningQueue"),
    (PlanningMessages, "send_message", "sqs:SendMessage", "PlanningQueue"),
    (RefusedQueue, "send_message", "sqs:SendMessage", "registrations-dead"),
    (PublishedEvents, "publish", "events:PutEvents", "EventsBus"),
    (scheduler_client.Parameter, "read", "ssm:GetParameter", "signing-masters"),
    (test_export.MemoryBucket, "put", "s3:PutObject", EXPORTED),
    (test_export.MemoryBucket, "delete", "s3:DeleteObject", EXPORTED),
    (test_export.MemoryBucket, "names", "s3:ListBucket", EXPORT_BUCKET),
    (test_export.MemoryBucket, "folders", "s3:ListBucket", EXPORT_BUCKET),
    (AlarmBoard, "describe_alarms", "cloudwatch:DescribeAlarms", "*"),
)


class Needed(NamedTuple):
    """What a call needs: an action on a resource of the template. `pk`: the partition of a query, or of one item."""

    function: str
    action: str
    resource: str
    pk: str = ""


class Recorder:
    """Notes what each function's calls need while one of `ENTRIES` runs. Calls of the tests themselves do not count."""

    def __init__(self) -> None:
        self.function = ""
        self.needed: set[Needed] = set()
        # A target's thread: what a test does there is not the executor's.
        self._target = threading.local()

    def note(self, action: str, resource: str, pk: str = "") -> None:
        if self.function and not getattr(self._target, "called", False):
            self.needed.add(Needed(self.function, action, resource, pk))

    @contextmanager
    def installed(self) -> Iterator[None]:
        """During the block, each call of the worlds' clients is noted."""
        with pytest.MonkeyPatch.context() as patch:
            for function, owner, name in ENTRIES:
                patch.setattr(owner, name, self._entry(function, getattr(owner, name)))
            patch.setattr(Calls, "__call__", self._aside(Calls.__call__))
            for name in (*_ONE_ITEM, *_BATCHES, "query", "transact_write_items", "batch_execute_statement"):
                self._watch(patch, MemoryDynamoDB, name, _of_dynamodb)
            self._watch(patch, LetterBox, "send_message_batch", _of_letters)
            for client, name, action, resource in _OTHERS:
                self._watch(patch, client, name, lambda *_, need=(action, resource, ""): [need])
            yield

    def _entry(self, function: str, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def entered(*args: Any, **named: Any) -> Any:
            # What the planner's removal calls, the scheduler calls too.
            before, self.function = self.function, self.function or function
            try:
                return call(*args, **named)
            finally:
                self.function = before

        return entered

    def _aside(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def called(*args: Any) -> Any:
            self._target.called = True
            try:
                return call(*args)
            finally:
                self._target.called = False

        return called

    def _watch(
        self,
        patch: pytest.MonkeyPatch,
        client: type,
        name: str,
        needs: Callable[..., Iterable[tuple[str, str, str]]],
    ) -> None:
        call = getattr(client, name)

        @wraps(call)
        def watched(*args: Any, **request: Any) -> Any:
            for need in needs(name, request):
                self.note(*need)
            return call(*args, **request)

        patch.setattr(client, name, watched)


def _of_dynamodb(name: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    if action := _ONE_ITEM.get(name):
        yield f"dynamodb:{action}", _table(request["TableName"]), _partition(request)
    elif action := _BATCHES.get(name):
        for table in request["RequestItems"]:
            yield f"dynamodb:{action}", _table(table), ""
    elif name == "query":
        table, index = _table(request["TableName"]), request.get("IndexName")
        pk = request["ExpressionAttributeValues"][":pk"]["S"]
        yield "dynamodb:Query", f"${{{table}.Arn}}/index/{index}" if index else table, pk
    elif name == "transact_write_items":
        for write in request["TransactItems"]:
            ((kind, part),) = write.items()
            yield f"dynamodb:{_TRANSACTION_ACTIONS[kind]}", _table(part["TableName"]), _partition(part)
    else:
        for statement in request["Statements"]:
            assert statement["Statement"].startswith("INSERT INTO "), statement
            yield "dynamodb:PartiQLInsert", _table(statement["Statement"].split('"')[1]), ""


def _partition(request: Mapping[str, Any]) -> str:
    return str((request.get("Key") or request["Item"])["pk"]["S"])


def _of_letters(name: str, request: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    queue = request["QueueUrl"].rpartition("-")[2]
    yield "sqs:SendMessage", queue if queue == REGISTRATIONS else f"{queue.title()}Queue", ""


def _table(name: str) -> str:
    """`RunsTable` of test-runs."""
    return f"{name.removeprefix('test-').title()}Table"


# What `play` gives to a test for a parameter of this type.
FIXTURES: dict[str, Callable[[World, pytest.MonkeyPatch], Any]] = {
    "World": lambda world, patch: world,
    "pytest.MonkeyPatch": lambda world, patch: patch,
    "Fleet": lambda world, patch: test_shares.prepared(world),
    "Destination": lambda world, patch: Destination(world),
    "Office": lambda world, patch: open_office(world, patch),
    "Rule": lambda world, patch: make_rule(open_office(world, patch), patch),
    "Stage": lambda world, patch: make_stage(world, ThreadPoolExecutor(2), ThreadPoolExecutor(2)),
}


def play(*modules: ModuleType) -> None:
    """Run the tests of these modules that need nothing but `FIXTURES`, each in a world of its own."""
    for flow in (
        flow for module in modules for name, flow in vars(module).items() if name.startswith("test_")
    ):
        types = {
            parameter.name: parameter.annotation for parameter in inspect.signature(flow).parameters.values()
        }
        if types and FIXTURES.keys() >= set(types.values()) and not hasattr(flow, "hypothesis"):
            with open_world() as world, pytest.MonkeyPatch.context() as patch:
                flow(**{name: FIXTURES[annotation](world, patch) for name, annotation in types.items()})

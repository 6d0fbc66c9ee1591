"""A whole Minute8 in one process for the tests: DynamoDB in memory, a queue and a clock that tests move.

with world() as w:
    w.registry.put("alice", "report", job(cron="0 3 * * *"))
    w.scheduler.tick()
    w.run_until("2026-11-21T03:30:00Z")
    assert w.statuses("alice", "report") == [...]
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import count
from typing import Any

from common.clock import ManualClock
from common.jobs.ended import EndedJobs
from common.jobs.store import JobStore
from common.jobs.wiring import job_store
from common.planning.due_index import DueIndex
from common.planning.executions_queue import ExecutionsQueue
from common.registration.definition import Limits
from common.registration.manual import ManualCommands
from common.registration.registry import Registry
from common.runs.changes import RunChanges
from common.runs.records import Outcome, Runs
from common.storage import keys
from common.storage.deployed import Tables
from common.storage.tables import ConditionFailed, Expression, Table
from common.tenants.allowed_targets import Hold
from common.tenants.rules import Quotas, TenantRules
from common.tenants.rules_cache import KnownTenants, RulesOf
from common.timing.slots import EVERYWHERE
from executor.batch import execute_batch
from executor.pipeline import Executor, Message
from executor.recorder import Report
from executor.redelivery import Redelivery
from executor.targets import Kind
from executor.wiring import executor
from scheduler.ended import Completion
from scheduler.reconcile import Reconciler
from scheduler.tick import Scheduler
from scheduler.wiring import reconciler, scheduler
from tests.simulation.memory_dynamodb import MemoryDynamoDB


class Killed(BaseException):
    """The process dies here: no `except Exception` catches this."""


TABLES = ("jobs", "due", "tenants", "audit", "runs")
ARN = "arn:aws:lambda:us-east-1:123456789012:function:target"


def at(text: str) -> int:
    """Epoch seconds of an RFC 3339 instant."""
    return int(datetime.fromisoformat(text).timestamp())


def job(*, invocation: str = "RequestResponse", **fields: Any) -> dict[str, Any]:
    """A job definition from schedule fields (cron, every, at, timezone…) and job fields."""
    timing = ("cron", "every", "at", "timezone", "anchor", "start_at", "end_at", "exclude", "jitter_s")
    timing += ("dialect", "dst", "pace")
    schedule = {name: fields.pop(name) for name in timing if name in fields}
    target = {"kind": "lambda", "arn": ARN, "invocation": invocation}
    return {"schedule": schedule, "target": target, **fields}


def put_in_directory(due: Table, sk: str, jobs: object = 1) -> None:
    """A shard that a later version has listed, wherever ticks look."""
    due.put({"pk": "DIRECTORY#0", "sk": sk, "jobs": jobs, "filed": " ".join(EVERYWHERE)})
    for place in EVERYWHERE:
        due.put({"pk": keys.listings(place), "sk": sk})


def make_tables(client: Any, prefix: str = "test") -> None:
    """The tables, as serverless.yml has them."""
    for name in TABLES:
        request: dict[str, Any] = {
            "TableName": f"{prefix}-{name}",
            "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "S"},
            ],
        }
        if name == "runs":
            request["AttributeDefinitions"] += [
                {"AttributeName": "failed_tenant", "AttributeType": "S"},
                {"AttributeName": "failed_at", "AttributeType": "N"},
            ]
            request["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": "failures",
                    "KeySchema": [
                        {"AttributeName": "failed_tenant", "KeyType": "HASH"},
                        {"AttributeName": "failed_at", "KeyType": "RANGE"},
                    ],
                    "Projection": {"ProjectionType": "ALL"},
                }
            ]
        client.create_table(**request)


# Lambda refuses a message that has passed the same function about this often, unless its RecursiveLoop is Allow.
# https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
LOOP_LIMIT = 16


class SimulatedQueue:
    """SQS in simulated time, as far as Minute8 uses it: delays, visibility, at-least-once delivery.

    Each message has a lineage: the number of executor invocations that led to it. With `refuses_loops` Lambda refuses
    messages with a long lineage; `refused` has their bodies.
    """

    refuses_loops = False

    def __init__(self, clock: ManualClock, visibility_s: float = 330) -> None:
        self._clock = clock
        self._visibility_s = visibility_s
        self._numbers = count(1)
        self._waiting: list[tuple[float, int, str, str]] = []
        self._receives: dict[str, int] = {}
        self._hidden: dict[str, float] = {}
        self.delays: list[int] = []
        self.bodies: list[str] = []
        self.refused: list[str] = []
        self._lineage: dict[str, int] = {}
        self._received_lineage = 0

    def send_message_batch(self, QueueUrl: str, Entries: list[Mapping[str, Any]]) -> dict[str, Any]:
        for entry in Entries:
            delay_s = entry["DelaySeconds"]
            assert 0 <= delay_s <= 900, delay_s
            self.delays.append(delay_s)
            self.bodies.append(entry["MessageBody"])
            self._put(self._clock.now() + delay_s, entry["MessageBody"])
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    def _put(self, visible_at: float, body: str, message_id: str = "") -> None:
        number = next(self._numbers)
        self._lineage.setdefault(message_id or f"message-{number}", self._received_lineage)
        heapq.heappush(self._waiting, (visible_at, number, message_id or f"message-{number}", body))

    def get_queue_attributes(self, QueueUrl: str, AttributeNames: list[str]) -> dict[str, Any]:
        hidden = [one for one in self._waiting if one[0] > self._clock.now() and one[2] in self._receives]
        due = [one for one in self._waiting if one[0] <= self._clock.now()]
        counts = {
            "ApproximateNumberOfMessages": str(len(due)),
            "ApproximateNumberOfMessagesNotVisible": str(len(hidden)),
        }
        return {"Attributes": {name: counts[name] for name in AttributeNames}}

    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None

    def receive(self) -> Message | None:
        """The next visible message, taken out; `give_back` is its redelivery."""
        if not self._waiting or self._waiting[0][0] > self._clock.now():
            return None
        _, _, message_id, body = heapq.heappop(self._waiting)
        if self.refuses_loops and self._lineage[message_id] >= LOOP_LIMIT:
            self.refused.append(body)
            return self.receive()
        receives = self._receives[message_id] = self._receives.get(message_id, 0) + 1
        return Message(message_id, body, f"receipt of {message_id}", receives)

    def change_message_visibility_batch(
        self, QueueUrl: str, Entries: list[Mapping[str, Any]]
    ) -> dict[str, Any]:
        assert 0 < len(Entries) <= 10
        for entry in Entries:
            assert 0 <= entry["VisibilityTimeout"] <= 43_200
            self._hidden[entry["ReceiptHandle"]] = self._clock.now() + entry["VisibilityTimeout"]
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}

    @contextmanager
    def invocation_for(self, message: Message) -> Iterator[None]:
        """During the block, this message's invocation is the sender."""
        self._received_lineage = self._lineage.get(message.message_id, 0) + 1
        yield
        self._received_lineage = 0

    def give_back(self, message: Message) -> None:
        """The message is not deleted, so it is delivered again when it is visible."""
        visible_at = self._hidden.pop(message.receipt, self._clock.now() + self._visibility_s)
        self._put(visible_at, message.body, message.message_id)

    def __len__(self) -> int:
        return len(self._waiting)


@dataclass
class Calls:
    """The target: it records every call, and answers as `answer` says."""

    clock: ManualClock
    calls: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    answer: Callable[[Mapping[str, Any]], Outcome] = lambda event: Outcome(ok=True)

    def __call__(self, target: Mapping[str, Any], event: Mapping[str, Any], timeout_s: float) -> Outcome:
        self.calls.append((self.clock.now(), dict(event["minute8"])))
        return self.answer(event)

    @property
    def execution_ids(self) -> list[str]:
        return [context["execution_id"] for _, context in self.calls]

    def fire_times(self, job_id: str) -> list[str]:
        return [context["fire_at"] for _, context in self.calls if context["job_id"] == job_id]


@dataclass
class PublishedEvents:
    """Records the events for the bus, as (detail type, detail)."""

    events: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        self.events.append((detail_type, detail))


_DOES_ALL = TenantRules(
    allowed_targets=("*",), quotas=Quotas(jobs=10_000_000, executions_per_day=10_000_000_000)
)


@dataclass(frozen=True)
class AnyTenant:
    """Every tenant exists, with the same rules: by default, every target is allowed."""

    of_all: TenantRules = _DOES_ALL

    def rules(self, tenant: str, now: float) -> TenantRules:
        return self.of_all

    def learn(self, tenants: Iterable[str], now: float) -> None:
        """They are known."""

    def holds(self, now: float) -> Sequence[Hold]:
        return ()


class StoredOnDemand(KnownTenants):
    """The rules in the tenants table. A missing tenant is created when its rules are read."""

    def rules(self, tenant: str, now: float) -> TenantRules | None:
        return super().rules(tenant, now) or self._created(tenant, now)

    def read(self, tenant: str, now: float) -> TenantRules | None:
        return super().read(tenant, now) or self._created(tenant, now)

    def _created(self, tenant: str, now: float) -> TenantRules | None:
        free = Expression("attribute_not_exists(pk)", {})
        with suppress(ConditionFailed):
            self._table.put({**keys.tenant(tenant), **_DOES_ALL.to_item()}, free)
        return super().read(tenant, now)


@dataclass
class World:
    """All parts of Minute8, wired as the handlers wire them, on one manual clock."""

    clock: ManualClock
    dynamodb: Any
    sqs: SimulatedQueue
    tables: Tables
    queue: ExecutionsQueue
    target: Calls
    registry: Registry
    scheduler: Scheduler
    completion: Completion
    reconciler: Reconciler
    executor: Executor
    redelivery: Redelivery
    runs: Runs
    index: DueIndex
    events: list[tuple[str, Mapping[str, Any]]]
    manual: ManualCommands
    reports: list[Report] = field(default_factory=list)

    @property
    def store(self) -> JobStore:
        return self.registry.store

    def table(self, name: str) -> Table:
        return self.tables.named(name)

    def deliver(self) -> None:
        """Deliver the visible messages, one by one, until there are none."""
        while message := self.sqs.receive():
            self.deliver_one(message)

    def deliver_one(self, message: Message) -> None:
        """Deliver a message. If the executor's process dies, the queue delivers it again."""
        try:
            with self.sqs.invocation_for(message):
                reports, failed = execute_batch(self.executor, [message], self.redelivery)
        except Killed:
            self.sqs.give_back(message)
            return
        self.reports += reports
        if failed:
            self.sqs.give_back(message)

    def run_until(self, text: str, ticks: bool = False) -> None:
        """Move the clock from one delivery to the next, and with `ticks` through every minute 8, up to an instant."""
        end = at(text)
        while True:
            moments = [
                moment for moment in (self.sqs.next_at(), self._next_tick() if ticks else None) if moment
            ]
            moment = min(moments, default=end + 1)
            if moment > end:
                break
            self.clock.move_to(max(self.clock.now(), moment))
            self.deliver()
            if ticks and int(self.clock.now()) % 600 == 480:
                self.tick()
                self.clock.sleep(1)
        self.clock.move_to(max(self.clock.now(), end))

    def tick(self) -> None:
        """What the scheduler's handler does, except for deleted tenants."""
        began_at = self.clock.now()
        self.scheduler.tick()
        self.completion.delete_ended(began_at)

    def _next_tick(self) -> float:
        now = int(self.clock.now())
        return now + (480 - now) % 600

    def run_items(self, tenant: str, job_id: str) -> list[dict[str, Any]]:
        """The job's runs, oldest first."""
        return self.runs.of_job(tenant, job_id, limit=10_000)[::-1]

    def statuses(self, tenant: str, job_id: str) -> list[str]:
        """The job's runs, oldest first: `succeeded`, or `skipped(paused)`."""
        return [
            f"{run['status']}({run['reason']})" if "reason" in run else run["status"]
            for run in self.run_items(tenant, job_id)
        ]


@contextmanager
def world(now: str = "2026-11-21T03:12:00Z") -> Iterator[World]:
    """A fresh Minute8 at `now`."""
    yield make_world(MemoryDynamoDB(), now)


def make_world(dynamodb: Any, now: str, tenants: RulesOf | None = None) -> World:
    """Wire the parts over any DynamoDB client; the tables are made here. Without `tenants` every tenant may do all."""
    make_tables(dynamodb)
    clock = ManualClock(at(now))
    sqs = SimulatedQueue(clock)
    queue = ExecutionsQueue(sqs, "queue", clock)  # type: ignore[arg-type]
    tables = Tables(lambda name: Table(dynamodb, f"test-{name}"))
    store = job_store(tables, queue, clock, StoredOnDemand(tables.tenants), random.Random(8))
    published, target = PublishedEvents(), Calls(clock)
    kinds = {"lambda": Kind(target, lambda settings: settings["invocation"] == "RequestResponse")}
    runs = Runs(tables.runs)
    return World(
        clock=clock,
        dynamodb=dynamodb,
        sqs=sqs,
        tables=tables,
        queue=queue,
        target=target,
        registry=Registry(store, Limits()),
        scheduler=scheduler(tables, queue, clock, published),
        completion=Completion(EndedJobs(tables.due, tables.jobs), store, runs),
        reconciler=reconciler(tables, queue, clock, most=10_000),
        executor=executor(tables, queue, clock, store, published, tenants or AnyTenant(), kinds),
        # Nothing here takes long: a killed executor's message waits for the queue's own timeout.
        redelivery=Redelivery(sqs, "queue", clock, takes_long_s=None, random=random.Random(8)),  # type: ignore[arg-type]
        events=published.events,
        manual=ManualCommands(store, runs, RunChanges(tables.runs), queue, clock),
        runs=runs,
        index=DueIndex(tables.due),
    )

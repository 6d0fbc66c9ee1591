"""A whole Minute8 in one process for the tests: DynamoDB in memory, a queue and a clock that tests move.

with open_world() as world:
    world.registry.put("alice", "report", job(cron="0 3 * * *"))
    world.scheduler.tick()
    world.run_until("2026-11-21T03:30:00Z")
    assert world.statuses("alice", "report") == [...]
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from msgspec import structs

from common.config import Config
from common.deployment import Deployment
from common.jobs.job import ACTIVE, Job
from common.jobs.spec import JobSpec
from common.jobs.store import JobStore
from common.planning.chores import Chore, ChoreRunner, Done, Steps
from common.planning.due_index import DueIndex
from common.planning.queue import ExecutionsQueue, RemovalRequests
from common.registration.definition import Limits
from common.registration.manual import ManualCommands
from common.registration.registry import Registry
from common.registration.secret_store import SecretStore
from common.runs.callbacks import Callbacks
from common.runs.holders import Holders
from common.runs.records import Runs
from common.runs.unrecorded import Unrecorded
from common.storage import keys
from common.storage.table import Query, Table, Tables
from common.tenants.rules_cache import KnownTenants
from common.tenants.secrets import SecretKey
from common.tenants.webhook_secrets import WebhookSecrets
from common.timing.schedule import Schedule
from common.timing.slots import EVERYWHERE
from executor.batch import deliveries_of, execute_batch
from executor.pipeline import Executor, Message
from executor.recorder import Report
from executor.redelivery import Redelivery
from executor.targets import Kind
from executor.threads import Task
from minute8.eventbridge.import_lines import ScheduleLines
from minute8.eventbridge.schedule_input import PAYLOAD_FORMATS
from scheduler.lines import Lines
from scheduler.planner import Planner
from scheduler.projector import Projector
from scheduler.removal import Completion
from scheduler.tick import Scheduler
from tests.manual_clock import ManualClock
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.stand_ins import (
    AnyTenant,
    Calls,
    LosesAnswers,
    MemoryKms,
    PlanningMessages,
    PublishedEvents,
    SimulatedQueue,
    StoredOnDemand,
)


class Killed(BaseException):
    """The process dies here: no `except Exception` catches this."""


TABLES = ("jobs", "due", "tenants", "audit", "runs")
API_URL = "https://api.example.com"
ARN = "arn:aws:lambda:us-east-1:123456789012:function:target"


def at(text: str) -> int:
    """Epoch seconds of an RFC 3339 instant."""
    return int(datetime.fromisoformat(text).timestamp())


def job(*, invocation: str = "RequestResponse", **fields: Any) -> dict[str, Any]:
    """A job definition from schedule fields (cron, every, at, timezone…) and job fields."""
    timing: tuple[str, ...] = (
        "cron",
        "every",
        "at",
        "timezone",
        "anchor",
        "start_at",
        "end_at",
        "exclude",
        "jitter_s",
    )
    timing += ("dialect", "dst", "pace", "include_calendars", "on_excluded", "max_runs", "schedules")
    schedule = {name: fields.pop(name) for name in timing if name in fields}
    target = {"kind": "lambda", "arn": ARN, "invocation": invocation}
    return {"schedule": schedule, "target": target, **fields}


def plain_job(tenant: str, job_id: str, schedule: Schedule, *, effective_at: int = 0, **spec: Any) -> Job:
    """A job that no store has made; `spec` are fields of its definition."""
    return Job(
        tenant=tenant,
        job_id=job_id,
        spec=JobSpec(**{"schedule": {}, "target": {}} | spec),
        schedule=schedule,
        state=ACTIVE,
        revision=1,
        schedule_revision=1,
        effective_at=effective_at,
        created_at=0,
        updated_at=0,
        group="",
        shard=0,
    )


def with_spec(job: Job, **changes: Any) -> Job:
    """The job with other fields of its definition."""
    return structs.replace(job, spec=structs.replace(job.spec, **changes))


def put_in_directory(due: Table, sk: str, jobs: object = 1) -> None:
    """A shard that a later version has listed, wherever ticks look."""
    due.put({"pk": "DIRECTORY#0", "sk": sk, "jobs": jobs, "filed": " ".join(EVERYWHERE)})
    for place in EVERYWHERE:
        due.put({"pk": keys.listings(place), "sk": sk})


def damage_entry(world: World, tenant: str, job_id: str) -> None:
    """Make the job's due entry unreadable, as an edit by hand could."""
    job = world.store.get(tenant, job_id)
    world.table("due").put({**keys.due_entry(job.group, job.shard, tenant, job_id), "entry": "[9]"})


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


@dataclass
class World:
    """All parts of Minute8, wired as the handlers wire them, on one manual clock."""

    deployment: Deployment
    clock: ManualClock
    dynamodb: Any
    sqs: SimulatedQueue
    tables: Tables
    queue: ExecutionsQueue
    target: Calls
    registry: Registry
    scheduler: Scheduler
    completion: Completion
    projector: Projector
    executor: Executor
    redelivery: Redelivery
    runs: Runs
    index: DueIndex
    events: list[tuple[str, Mapping[str, Any]]]
    manual: ManualCommands
    callbacks: Callbacks
    planning: PlanningMessages
    secret_key: SecretKey
    reports: list[Report] = field(default_factory=list)

    @property
    def store(self) -> JobStore:
        return self.registry.store

    @property
    def secrets(self) -> SecretStore:
        return SecretStore(self.tables.tenants, self.tables.jobs, self.secret_key, self.store.audited)

    def table(self, name: str) -> Table:
        return self.tables.named(name)

    def deliver(self) -> None:
        """Deliver the visible messages, one by one, until there are none."""
        while message := self.sqs.receive():
            self.deliver_one(message)

    def execute(self, message: Message) -> Report:
        """Execute a message in this thread. Raises what makes the queue deliver it again."""
        (delivery,) = deliveries_of([message], self.clock.now())
        return Task(self.executor, delivery, delivery).finish()

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
        self.scheduler.tick()
        self.delete_ended()
        self.round("lines", Lines(self.tables, self.queue, self.clock).steps)

    def delete_ended(self, seconds: float = 150) -> int:
        """Delete the jobs that are over, as a tick does. Returns how many."""
        done = Done("ended jobs", self.clock, self.clock.now() + seconds)
        for _ in self.completion.steps(None, done):
            pass
        return done.counts["deleted"]

    @property
    def unrecorded(self) -> Unrecorded:
        return Unrecorded(self.tables.due, self.tables.runs)

    def project(self) -> Done:
        """A round of the projection, which must not meet a problem."""
        done = self.round("projection", self.projector.steps)
        assert not done.problems
        assert all("without a record" in error for error in done.errors)
        return done

    def round(self, name: str, steps: Steps, seconds: float = 200) -> Done:
        """A round of one chore."""
        runner = ChoreRunner(self.tables.due, self.clock, "test")
        (done,) = runner.run([Chore(name, steps)], self.clock.now() + seconds)
        return done

    def _next_tick(self) -> float:
        now = int(self.clock.now())
        return now + (480 - now) % 600

    def run_items(self, tenant: str, job_id: str) -> list[dict[str, Any]]:
        """The job's runs, oldest first."""
        return list(self.table("runs").query(Query(keys.runs_of_job(tenant, job_id))))

    def statuses(self, tenant: str, job_id: str) -> list[str]:
        """The job's runs, oldest first: `succeeded`, or `skipped(paused)`."""
        return [
            f"{run['status']}({run['reason']})" if "reason" in run else run["status"]
            for run in self.run_items(tenant, job_id)
        ]


@contextmanager
def open_world(now: str = "2026-11-21T03:12:00Z") -> Iterator[World]:
    """A fresh Minute8 at `now`."""
    yield make_world(MemoryDynamoDB(), now)


def losing_answers(world: World) -> World:
    """The same world, whose tables' writes are all requested twice: the first answers are lost."""
    client: Any = LosesAnswers(world.dynamodb)
    return replace(world, tables=Tables(lambda name: Table(client, f"test-{name}", now=world.clock.now)))


def make_world(
    dynamodb: Any, now: str, tenants: KnownTenants | None = None, *, pauses_move_the_clock: bool = False
) -> World:
    """Wire the parts over any DynamoDB client; the tables are made here. Without `tenants` every tenant may do all."""
    make_tables(dynamodb)
    clock = ManualClock(at(now))
    sleep = clock.sleep if pauses_move_the_clock else time.sleep
    sqs = SimulatedQueue(clock)
    queue = ExecutionsQueue(sqs, "queue", clock)  # type: ignore[arg-type]
    tables = Tables(lambda name: Table(dynamodb, f"test-{name}", sleep, clock.now))
    published, target, planning = PublishedEvents(), Calls(clock), PlanningMessages()
    secret_key = SecretKey(MemoryKms(), "key")
    deployment = Deployment(
        Config.from_env({"API_URL": API_URL, "STAGE": ""}),
        clock=clock,
        tables=tables,
        sqs=sqs,
        queue=queue,
        events=published,
        known_tenants=StoredOnDemand(tables.tenants),
        rules=tenants or AnyTenant(),
        rng=random.Random(8),
        webhook_secrets=WebhookSecrets(tables.tenants, lambda: None),
        removals=RemovalRequests(planning, "planning", clock),  # type: ignore[arg-type]
        secret_key=secret_key,
    )
    store, runs = deployment.stored_jobs, deployment.runs
    kinds = {"lambda": Kind(target), "http": Kind(target)}
    return World(
        deployment=deployment,
        clock=clock,
        dynamodb=dynamodb,
        sqs=sqs,
        tables=tables,
        queue=queue,
        target=target,
        registry=Registry(store, Limits(payload_formats=PAYLOAD_FORMATS), ScheduleLines()),
        scheduler=Scheduler(Planner.of(deployment)),
        completion=Completion(deployment.ended_jobs, store, runs),
        projector=Projector.of(tables, queue, clock),
        executor=Executor.of(deployment, kinds),
        # Nothing here takes long: a killed executor's message waits for the queue's own timeout.
        redelivery=Redelivery(sqs, "queue", clock, slow_after_s=None, random=random.Random(8)),  # type: ignore[arg-type]
        events=published.events,
        callbacks=Callbacks(runs, queue),
        manual=ManualCommands(store, runs, queue, clock, PAYLOAD_FORMATS, Holders(tables.runs, queue, clock)),
        runs=runs,
        index=deployment.index,
        planning=planning,
        secret_key=secret_key,
    )

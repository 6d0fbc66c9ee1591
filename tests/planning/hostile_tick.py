"""A tick and its planners over tables in memory, in a separate process that is measured.

    python -m tests.planning.hostile_tick

One tenant with default quotas has everything at its bound: jobs, groups, calendars, excluded dates, executions a day,
`every: 1` after a day's outage; and what went wrong before: entries, groups and messages that no version can read.
Prints peak memory and processor time of the handlers, and what they did.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations
from typing import Any

from msgspec import structs, to_builtins

from tests.processes import ENVIRONMENT, peak_mb

if __name__ == "__main__":  # before botocore looks; a test that imports this keeps its own environment
    os.environ |= ENVIRONMENT

from common.jobs.calendars import Calendar
from common.planning.directory import FILING, Listing, Shard
from common.planning.due_entry import DueEntry
from common.planning.due_index import DueIndex
from common.planning.execution import Execution
from common.storage import aws, keys
from common.storage.table import Table
from common.storage.transactions import Transaction
from common.tenants.tenant import Quotas
from common.timing.groups import group_key
from common.timing.instants import DAY_S
from common.timing.schedule import CronTiming, EveryTiming, Schedule
from common.timing.windows import WINDOW_S, planning_end
from common.timing.zones import zone_names
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.worlds import TABLES, put_in_directory

MAX_CALENDARS = 10
MAX_DATES = 2_500
MAX_EXCLUDED_DATES = 400
MAX_JITTER_S = 86_400
MAX_TENANT_CALENDARS = 100

TENANT = "t" * 64
EACH_SECOND = 11
PENDING = 2_000
POSTPONED = 5_000
BAD_ENTRIES = 2_000
BAD_GROUPS = 500
EMPTY = 10_000
# A shard costs a share as much as nine entries, and a share has 20,000.
OF_ONE_SHARE = 2_200


class Queues:
    """SQS: keeps the messages to planners, and counts those to executors."""

    def __init__(self) -> None:
        self.executions = 0
        self.planning: list[str] = []

    def send_message_batch(self, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:
        if QueueUrl == "planning":
            self.planning += [entry["MessageBody"] for entry in Entries]
        else:
            assert all(0 <= entry["DelaySeconds"] <= 900 for entry in Entries)
            self.executions += len(Entries)
        return {"Successful": [{"Id": entry["Id"]} for entry in Entries]}


def calendar_name(number: int) -> str:
    return f"calendar-{number}".ljust(64, "c")


def job_name(number: int) -> str:
    return f"job-{number}".ljust(128, "j")


def schedules(now: int) -> Iterator[Schedule]:
    """A schedule for each job that the quota allows: some fire each second, all others are in separate groups."""
    quotas = Quotas()
    other_jobs = quotas.jobs - EACH_SECOND
    most_a_day = (quotas.executions_per_day - EACH_SECOND * DAY_S) // other_jobs
    hours = combinations(range(24), most_a_day)
    zones = sorted(zone_names())
    dates = tuple(f"20{n // 28 + 30}-01-{n % 28 + 1:02}" for n in range(MAX_EXCLUDED_DATES))
    for number in range(quotas.jobs):
        first = number % (MAX_TENANT_CALENDARS - MAX_CALENDARS)
        names = tuple(calendar_name(n) for n in range(first, first + MAX_CALENDARS))
        timing: EveryTiming | CronTiming = EveryTiming(1, now - 30 * DAY_S)
        if number >= EACH_SECOND:
            hour = ",".join(map(str, next(hours)))
            odd_days = ",".join(map(str, range(1, 32, 2)))
            timing = CronTiming(
                f"{number % 60} {hour} {odd_days} * 0,1,2,3,4,5,6", zones[number % len(zones)]
            )
        yield Schedule.of(
            timing,
            start_at=now - 60 * DAY_S,
            end_at=now + 60 * DAY_S,
            exclude_dates=dates,
            calendars=names,
            jitter_s=MAX_JITTER_S,
        )


def fill(dynamodb: Any, now: int) -> None:
    jobs, due = Table(dynamodb, "test-jobs"), Table(dynamodb, "test-due")
    index, end = DueIndex(due), planning_end(now - DAY_S)
    for number in range(MAX_TENANT_CALENDARS):
        dates = tuple(f"{1990 + n // 336}-{n // 28 % 12 + 1:02}-{n % 28 + 1:02}" for n in range(MAX_DATES))
        name = calendar_name(number)
        stored = Calendar(
            tenant=TENANT, name=name, text=",".join(dates), source={}, created_at=0, updated_at=0
        )
        jobs.put({**keys.calendar(TENANT, name), **to_builtins(stored)})
    for number, schedule in enumerate(schedules(now)):
        entry = DueEntry(TENANT, job_name(number), schedule, now - 40 * DAY_S, 1, "all")
        group = group_key(schedule)
        tx = Transaction(dynamodb)
        index.directory.open([Listing(Shard(group, 0))])
        index.put_entry(tx, entry, group, 0)
        index.directory.count(tx, group, 0, 1)
        if number < PENDING:
            index.put_pending(tx, structs.replace(entry, effective_at=end - WINDOW_S), 1)
        tx.commit()
        if number < BAD_ENTRIES:
            key = keys.due_entry(group, 0, TENANT, f"bad-{number}")
            due.put({**key, "entry": '["' + "x" * 5_000})
    for number in range(POSTPONED):
        run = Execution(TENANT, "job", now - number, now - number, 1, attempt=2)
        key = keys.postponed(run.visible_at, f"{run.execution_id}#2")
        due.put({**key, "body": run.encode() if number % 5 else "{" * 5_000})
    for number in range(BAD_GROUPS):
        put_in_directory(due, f"cron|No/Where|{number} 3 * * *#0")
    for number in range(EMPTY):
        due.put({**keys.directory(f"every|{86_400 + number * 300}|{number}", 0), "jobs": 0})
    due.put({**keys.PROGRESS, "planned_until": end, "planning_until": end})


def fill_one_share(dynamodb: Any, now: int) -> None:
    """As many groups of one job as a tick plans by itself, all due in the next window, and no others."""
    due = Table(dynamodb, "test-due")
    for item in dynamodb.scan("test-due")["Items"]:
        if item["pk"]["S"].startswith(("LISTED#", "DIRECTORY#", "QUARANTINE")):
            dynamodb._set("test-due", item, None)
    index, end = DueIndex(due), planning_end(now)
    start = datetime.fromtimestamp(end - WINDOW_S, UTC)
    other_days = [day for day in range(1, 32) if day != start.day]
    days = (sorted({start.day, *more}) for size in range(1, 4) for more in combinations(other_days, size))
    for number, dates in zip(range(OF_ONE_SHARE), days, strict=False):
        cron = f"{start.minute} {start.hour} {','.join(map(str, dates))} * *"
        schedule = next(schedules(now))
        schedule = structs.replace(schedule, every_s=None, anchor_at=None, cron=cron, jitter_s=0)
        entry = DueEntry(TENANT, f"one-{number}".ljust(128, "o"), schedule, now - 40 * DAY_S, 1, "all")
        group = group_key(schedule)
        tx = Transaction(dynamodb)
        index.directory.open([Listing(Shard(group, 0))])
        index.put_entry(tx, entry, group, 0)
        index.directory.count(tx, group, 0, 1)
        tx.commit()
    until = end - WINDOW_S
    filed = {"filing": FILING, "filed_until": until}
    due.put({**keys.PROGRESS, "planned_until": until, "planning_until": until, **filed})


def main() -> dict[str, Any]:
    dynamodb: Any = MemoryDynamoDB()
    queues: Any = Queues()
    for name in TABLES:
        dynamodb.create_table(f"test-{name}")
    fill(dynamodb, int(time.time()))
    aws.dynamodb = lambda: dynamodb  # type: ignore[assignment]
    aws.sqs = lambda: queues  # type: ignore[assignment]
    from scheduler import handler

    measured: dict[str, Any] = {"ready_mb": peak_mb()}
    used = time.process_time()
    measured["tick"] = {name: value for name, value in handler.handle({}, None).items() if name != "bad"}
    measured |= {"tick_mb": peak_mb(), "tick_cpu_s": time.process_time() - used}
    used = time.process_time()
    for body in queues.planning:
        handler.handle_shares({"Records": [{"body": body}]}, None)
    measured |= {"planners_mb": peak_mb(), "planners_cpu_s": time.process_time() - used}
    progress = DueIndex(Table(dynamodb, "test-due")).progress()
    assert progress
    lag_s = int(time.time()) - progress.planned_until
    # With the longest jitter most of them wait in the table, for a later tick.
    items = dynamodb.scan("test-due")["Items"]
    waiting = sum(item["pk"]["S"].startswith("POSTPONED#") for item in items)
    shares, executions = len(queues.planning), queues.executions + waiting
    fill_one_share(dynamodb, int(time.time()))
    used = time.process_time()
    measured["alone"] = {name: value for name, value in handler.handle({}, None).items() if name != "bad"}
    measured |= {"alone_mb": peak_mb(), "alone_cpu_s": time.process_time() - used}
    return measured | {
        "shares": shares,
        "executions": executions,
        "runs": len(dynamodb.scan("test-runs")["Items"]),
        "is_open": progress.is_open,
        "lag_s": lag_s,
    }


if __name__ == "__main__":
    print(json.dumps(main(), default=str))

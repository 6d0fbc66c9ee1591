"""The cost of one tick, next to reading every definition and expanding each for the window with croniter."""

from __future__ import annotations

import json
import random
import statistics
import tracemalloc
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from boto3.dynamodb.types import TypeDeserializer
from croniter import croniter

from common.storage.wire import to_wire
from common.timing import groups
from scheduler.summary import TickSummary
from scripts.benchmarks import workload
from scripts.benchmarks.due_stub import BARE_PROCESS_MB, DueStub, scheduler_over
from scripts.benchmarks.stub_aws import QUEUE_URL, Cost, StubAws
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import cpu_s, ratio, take_turns, track
from tests.manual_clock import ManualClock

# On the hour, when most jobs are due, and at another time.
_ON_HOUR, _OFF_HOUR = workload.DAY + 7 * 3600, workload.DAY + 7 * 3600 + 1200
# Of a hundred registered jobs and of a million the same ones are due.
_SAME_DUE = 100
_ROUNDS = 5
# Its cost is proportional to the definitions, so it is measured on this many at a time.
SAMPLE = 2_000


@dataclass(slots=True)
class Tick:
    """One measured tick."""

    summary: TickSummary
    cost: Cost
    items_read: int


class Ticker:
    """Ticks over a due table of this many registered jobs."""

    def __init__(self, registered: int, start: int, due: int | None = None) -> None:
        self.registered, self.start = registered, start
        self._table = DueStub(registered, start, start + 600, due)
        self.groups = self._table.groups
        self._aws = StubAws()
        self._aws.answers |= {
            "GetItem": self._table.get_item,
            "UpdateItem": self._table.update_item,
            "PutItem": self._table.put_item,
            "BatchWriteItem": self._table.batch_write_item,
            "Query": self._table.query,
            "BatchGetItem": self._table.batch_get_item,
        }
        self._dynamodb, self._sqs = self._aws.direct("dynamodb"), self._aws.direct("sqs")

    def tick(self) -> Tick:
        self._table.progress.update(
            planned_until=self.start, planning_until=self.start, filed_until=self.start
        )
        self._table.items_read = 0
        scheduler = scheduler_over(self._dynamodb, self._sqs, ManualClock(self.start - 119.5))
        with self._aws.measured() as cost:
            summary = scheduler.tick()
        return Tick(summary, cost, self._table.items_read)

    def peak_mb(self) -> float:
        """The peak memory of a tick, including the pages that it reads."""
        tracemalloc.start()
        try:
            self.tick()
            return tracemalloc.get_traced_memory()[1] / 1e6 + BARE_PROCESS_MB
        finally:
            tracemalloc.stop()


def run(scale: float) -> Result:
    """Measure; `scale` 1 is 1 million registered jobs at most."""
    sizes = [max(200, int(size * scale)) for size in (10_000, 100_000, 1_000_000)]
    naive = Naive(_ON_HOUR, max(100, min(SAMPLE, int(10 * SAMPLE * scale))))
    rows, figures = [], {}
    peak_mb = 0.0
    for size, start, at in [*((size, _ON_HOUR, "07:00") for size in sizes), (sizes[-1], _OFF_HOUR, "07:20")]:
        ticker = Ticker(size, start)
        measured = figures[f"{size} at {at}"] = _next_to(naive, ticker)
        rows.append(_row(ticker, at, measured))
        peak_mb = max(peak_mb, ticker.peak_mb())
    growth, growth_bytes, growth_table = _growth([_SAME_DUE, sizes[-1]])
    cold_s, warm_s, schedules = _evaluation(max(1_000, int(100_000 * scale)))
    largest = [measured for name, measured in figures.items() if name.startswith(f"{sizes[-1]} ")]
    return Result(
        "planning",
        scale,
        tables=[_main_table(rows), growth_table],
        goals=[
            Goal(
                f"planning {sizes[-1]:,} registered jobs: the naive loop's CPU / ours",
                *(300, min(measured["ratio"] for measured in largest)),
                at_least=True,
            ),
            Goal(
                f"planning the same {_SAME_DUE} due: CPU at {sizes[-1]:,} / at {_SAME_DUE} registered",
                *(1.1, growth),
                at_least=False,
            ),
            Goal(
                f"planning the same {_SAME_DUE} due: bytes at {sizes[-1]:,} / at {_SAME_DUE} registered",
                *(1.1, growth_bytes),
                at_least=False,
            ),
            Goal("peak memory of a tick, MB", 512, peak_mb, at_least=False),
            Goal(f"{schedules:,} distinct schedules evaluated on one core, s", 2, cold_s, at_least=False),
        ],
        figures={"ticks": figures, "growth": growth, "peak_mb": peak_mb, "cold_s": cold_s, "warm_s": warm_s},
        notes=[
            f"{schedules:,} distinct schedules: {cold_s:.2f} s cold (their texts are read), {warm_s:.2f} s warm.",
            f"The naive loop's cost per definition is measured on {SAMPLE:,} others in each round, and multiplied.",
        ],
    )


def _next_to(naive: Naive, ticker: Ticker) -> dict[str, float]:
    ticks: list[Tick] = []

    def tick_s() -> float:
        ticks.append(ticker.tick())
        return ticks[-1].cost.cpu_s

    rounds = take_turns(
        {
            "ours": tick_s,
            "naive": lambda: naive.per_job_s() * ticker.registered,
        },
        _ROUNDS,
    )
    tick = ticks[-1]
    return {
        "ratio": ratio(rounds["naive"], rounds["ours"]),
        "cpu_s": statistics.median(rounds["ours"]),
        "naive_cpu_s": statistics.median(rounds["naive"]),
        "executions": tick.summary.planned,
        "items_read": tick.items_read,
        "naive_items_read": ticker.registered,
        "mb_read": tick.cost.bytes_read / 1e6,
        "naive_mb_read": naive.bytes_a_job * ticker.registered / 1e6,
        "read_requests": tick.cost.requests["Query"] + tick.cost.requests["GetItem"],
        "send_requests": tick.cost.requests["SendMessageBatch"],
    }


def _row(ticker: Ticker, at: str, figures: dict[str, float]) -> list[str]:
    return [
        f"{ticker.registered:,}",
        at,
        f"{ticker.groups:,}",
        f"{figures['executions']:,}",
        f"{figures['cpu_s']:.2f}",
        f"{figures['naive_cpu_s']:.1f}",
        f"**{figures['ratio']:.0f}**",
        f"{figures['items_read']:,} / {figures['naive_items_read']:,}",
        f"{figures['mb_read']:.1f} / {figures['naive_mb_read']:.0f}",
        f"{figures['read_requests']:,} + {figures['send_requests']:,}",
    ]


def _main_table(rows: list[list[str]]) -> Table:
    head = ["registered", "window", "groups", "executions", "CPU s", "naive CPU s", "ratio"]
    head += ["items read / naive", "MB read / naive", "requests: read + send"]
    return Table("One tick, next to reading and expanding every definition", head, rows)


def _growth(sizes: list[int]) -> tuple[float, float, Table]:
    """The same jobs due, out of few and out of many registered: the growth of CPU and of bytes read."""
    sizes = sorted(set(sizes))
    tickers = {size: Ticker(size, _ON_HOUR, _SAME_DUE) for size in sizes}
    rounds = take_turns(
        {str(size): lambda ticker=ticker: ticker.tick().cost.cpu_s for size, ticker in tickers.items()},  # type: ignore[misc]
        3 * _ROUNDS,
    )
    rows, bytes_read = [], []
    for size, ticker in tickers.items():
        tick = ticker.tick()
        bytes_read.append(tick.cost.bytes_read)
        milliseconds = statistics.median(rounds[str(size)]) * 1000
        row = [f"{size:,}", f"{ticker.groups:,}", f"{tick.summary.planned:,}"]
        rows.append([*row, f"{tick.summary.groups_known:,}", f"{milliseconds:.1f}", f"{bytes_read[-1]:,}"])
    head = ["registered", "groups", "executions", "groups looked at", "CPU ms", "bytes read"]
    table = Table("The same number due", head, rows)
    return ratio(rounds[str(sizes[-1])], rounds[str(sizes[0])]), bytes_read[-1] / bytes_read[0], table


def _evaluation(count: int) -> tuple[float, float, int]:
    """Whether distinct groups fire in a window: computed the first time, and again."""
    rng = random.Random(8)
    keys = set[str]()
    for _ in track(range(count), "schedules"):
        hours = ",".join(str(hour) for hour in sorted(rng.sample(range(24), rng.choice((1, 2, 3, 4)))))
        ten, zone = rng.randrange(6) * 10, rng.choice(workload.ZONES)
        days = rng.choice((f"{rng.randrange(1, 29)} * *", f"* {rng.randrange(1, 13)} {rng.randrange(7)}"))
        keys.add(f"cron|{zone}|{ten}-{ten + 9} {hours} {days}")
    while len(keys) < count:
        keys.add(f"every|{rng.randrange(7200, 86400)}|{rng.randrange(12)}")

    def evaluation_s(start: int) -> float:
        return cpu_s(lambda: sum(groups.group_can_fire(key, start, start + 600) for key in keys))

    groups._parsed_alone.cache_clear()
    return evaluation_s(_ON_HOUR), evaluation_s(_OFF_HOUR), len(keys)


class Naive:
    """One planner without groups."""

    def __init__(self, start: int, sample: int = SAMPLE) -> None:
        self._sample = sample
        self._start = start
        self._aws = StubAws()
        self._aws.answers["Query"] = lambda _request: self._body
        self._body = b""
        self.bytes_a_job = 0.0

    def per_job_s(self) -> float:
        """Processor seconds for each definition, over another sample of the mix each time."""
        first = random.randrange(10**6)
        wires = [to_wire(workload.job(number).to_item()) for number in range(first, first + self._sample)]
        self._body = json.dumps(
            {"Items": wires, "Count": self._sample, "ScannedCount": self._sample}
        ).encode()
        self.bytes_a_job = len(self._body) / self._sample
        dynamodb, sqs = self._aws.stock_client("dynamodb"), self._aws.stock_client("sqs")
        with self._aws.measured() as cost:
            answer = dynamodb.query(
                TableName="jobs",
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": {"S": "x"}},
            )
            due = [message for wire in answer["Items"] for message in self._due(_read(wire))]
            for first in range(0, len(due), 10):
                sqs.send_message_batch(QueueUrl=QUEUE_URL, Entries=due[first : first + 10])
        return cost.cpu_s / self._sample

    def _due(self, job: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"Id": str(fire_at), "MessageBody": json.dumps({"job": job["job_id"], "at": fire_at})}
            for fire_at in expanded(job["schedule"], self._start, self._start + 600)
        ]


def _read(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: TypeDeserializer().deserialize(value) for name, value in wire.items()}


def expanded(schedule: dict[str, Any], start: int, end: int) -> list[int]:
    """A schedule's fire times in the window, by croniter alone."""
    if "at" in schedule:
        return [int(schedule["at"])] if start <= schedule["at"] < end else []
    if "every_s" in schedule:
        every_s = int(schedule["every_s"])
        return list(range(start + (int(schedule["anchor_at"]) - start) % every_s, end, every_s))
    zone = ZoneInfo(schedule.get("timezone", "UTC"))
    times = croniter(schedule["cron"], datetime.fromtimestamp(start - 1, zone), second_at_beginning=True)
    fire_times = []
    while (at := times.get_next(datetime).timestamp()) < end:
        fire_times.append(int(at))
    return fire_times

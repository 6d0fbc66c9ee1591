"""Ten million registered jobs with a million due at one second: the time until all are in the queue."""

from __future__ import annotations

import tracemalloc
from dataclasses import dataclass, replace

from common.planning.shares import PlanningQueue, PlanningWork, Shares
from common.storage.table import Table as DynamoTable
from scheduler.planner import HURRY_S, FanOut, SharePlanner
from scheduler.summary import TickSummary
from scripts.benchmarks import workload
from scripts.benchmarks.due_stub import BARE_PROCESS_MB, SharesStub, scheduler_over
from scripts.benchmarks.model import simulate
from scripts.benchmarks.modelled_aws import Message, Outcome, Service, Setting
from scripts.benchmarks.stub_aws import QUEUE_URL, Cost, StubAws
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import track
from tests.manual_clock import ManualClock

_REGISTERED, _DUE_TOGETHER = 10_000_000, 1_000_000
_START = workload.DAY + 7 * 3600
# The defaults of deploy/parameters.yml.
SHARE_ENTRIES, TICK_MB, PLANNER_MB = 20_000, 512, 1024
# The memory of a function with one processor.
_PROCESSOR_MB = 1_769
# Requests that wait for each other: pages of the directory, a share's shards.
_REQUEST_S = 0.02
# The tick is at minute 8, and its rule fires somewhere in that minute.
_TICK_AHEAD_S, _RULE_LATE_S = 120, 60
_SAMPLED_SHARES = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One invocation's work and cost."""

    summary: TickSummary
    cost: Cost

    def lasts_s(self, memory_mb: int) -> float:
        """Its duration on AWS: the processor time at this memory, and the requests that do not overlap with work."""
        read = sum(count for name, count in self.cost.requests.items() if name != "SendMessageBatch")
        return self.cost.cpu_s / (memory_mb / _PROCESSOR_MB) + read * _REQUEST_S


class Stage:
    """A tick and its planners over the stub."""

    def __init__(self, table: SharesStub, share_entries: int) -> None:
        self.table = table
        self._aws = StubAws()
        self._aws.answers |= {
            "GetItem": table.get_item,
            "UpdateItem": table.update_item,
            "Query": table.query,
            "BatchGetItem": table.batch_get_item,
            "DeleteItem": table.delete_item,
            "PutItem": table.put_item,
            "BatchWriteItem": table.batch_write_item,
        }
        dynamodb, sqs = self._aws.client("dynamodb"), self._aws.client("sqs")
        self._shares = Shares(DynamoTable(dynamodb, "due"))
        self._planning_queue = PlanningQueue(sqs, QUEUE_URL)
        fan_out = FanOut(self._shares, self._planning_queue, share_entries)
        alone = scheduler_over(dynamodb, sqs, ManualClock(_START - _TICK_AHEAD_S + 0.5))
        self._scheduler = replace(alone, fan_out=fan_out)
        self._planner = alone.planner

    def tick(self) -> Measured:
        """Divide the window."""
        with self._aws.measured() as cost:
            summary = self._scheduler.tick()
        return Measured(summary, cost)

    def shares(self) -> list[int]:
        """The numbers of those that the tick recorded."""
        return self._shares.unconfirmed(self._planner.index.ensure_progress(_START))

    def plan(self, number: int) -> Measured:
        """Hand over one share."""
        planner = SharePlanner(self._planner, self._shares, self._planning_queue)
        with self._aws.measured() as cost:
            summary = planner.plan(PlanningWork(end=_START + 600, share=number).body)
        return Measured(summary, cost)


def run(scale: float) -> Result:
    """Tick over 10 million registered jobs at scale 1, run some of its planners, and model all of them."""
    registered, at_once = int(_REGISTERED * scale), int(_DUE_TOGETHER * scale)
    share_entries = max(100, int(SHARE_ENTRIES * scale))
    stage = Stage(SharesStub(registered, at_once, _START), share_entries)
    tracemalloc.start()
    tick = stage.tick()
    peak_mb = tracemalloc.get_traced_memory()[1] / 1e6 + BARE_PROCESS_MB
    tracemalloc.stop()
    tick = _again(stage)
    shares = tick.summary.shares
    sampled = stage.shares()[:: max(1, shares // _SAMPLED_SHARES)]
    planners = [stage.plan(number) for number in track(sampled, "shares")]
    planned = sum(planner.summary.planned for planner in planners) / len(planners) * shares
    tick_s = tick.lasts_s(TICK_MB)
    each_s = max(planner.lasts_s(PLANNER_MB) for planner in planners)
    outcome = _planners(shares, each_s, tick_s)
    # Planners send only late in each second until the window is near. The last one may have to wait for that.
    hurry_s = _TICK_AHEAD_S - _RULE_LATE_S - HURRY_S + each_s
    queued_s = max(*outcome.lateness, hurry_s)
    entries = sum(planner.summary.entries_read for planner in planners) / len(planners) * shares
    rows = [
        ["registered jobs", f"{registered + at_once:,}"],
        ["groups, directory items read", f"{stage.table.groups:,}, {tick.summary.groups_known:,}"],
        ["the tick: processor time here, s", f"{tick.cost.cpu_s:.2f}"],
        ["the tick: peak memory, MB", f"{peak_mb:.0f}"],
        [f"the tick on AWS at {TICK_MB} MB, s", f"{tick_s:.1f}"],
        ["due entries, executions in the window", f"{entries:,.0f}, {planned:,.0f}"],
        [f"shares of {share_entries:,} entries", str(shares)],
        ["a planner: processor time here, s", f"{max(p.cost.cpu_s for p in planners):.2f}"],
        [f"a planner on AWS at {PLANNER_MB} MB, s", f"{each_s:.1f}"],
        ["planners at once, simulated", str(outcome.max_executors)],
        [
            "everything in the queue after the tick began, s, simulated, in a hurry",
            f"{max(outcome.lateness):.0f}",
        ],
        ["the same, sending late in each second until the window is near", f"{queued_s:.0f}"],
    ]
    return Result(
        "registered",
        scale,
        tables=[Table("One window of ten million registered jobs, of which a million are due at its first second",
                      ["what", "measured"], rows)],
        goals=[
            Goal("ten million registered: peak memory of a tick, MB", 512, peak_mb, at_least=False),
            Goal("ten million registered: a million executions of one second in the queue, s after a late tick's begin",
                 _TICK_AHEAD_S - _RULE_LATE_S, queued_s, at_least=False),
        ],
        figures={"tick_cpu_s": tick.cost.cpu_s, "planner_s": each_s, "shares": shares, "queued_s": queued_s,
                 "executions": planned, "groups": stage.table.groups},
        notes=[
            f"Requests that nothing overlaps with are counted, at {_REQUEST_S * 1000:.0f} ms each. The planners are"
            " simulated with the default polling of the planning queue, all of them cold."
        ],
    )  # fmt: skip


def _again(stage: Stage) -> Measured:
    """The same tick without tracing memory, which takes most of its time."""
    stage.table.forget()
    return stage.tick()


def _planners(shares: int, each_s: float, sent_at: float) -> Outcome:
    """When each share is in the queue; time 0 is the tick's begin."""
    messages = [Message(sent_at, 0.0, number) for number in range(shares)]
    return simulate(messages, Setting(batch=1, services=(Service((each_s,), each_s),)))

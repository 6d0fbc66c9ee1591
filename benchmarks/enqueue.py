"""Executions handed to the queue, next to a bare loop of full SendMessageBatch calls with prepared bodies."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks import workload
from benchmarks.holding import REQUEST_S, executions
from benchmarks.measure import ratio, take_turns
from benchmarks.result import Goal, Result, Table
from benchmarks.stub_aws import QUEUE_URL, Cost, StubAws
from common.clock import ManualClock, SystemClock
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue

_LATE = "ours, late in each second"
_THREADS = (1, 4, 8, 16, 32)
_ROUNDS = 7
_BURST = 1_000_000
_WANTED_S = 90
# At 512 MB a function has 512/1769 of a processor:
# https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_PLANNER_MB = (512, 1024, 1769)
_MB_PER_CORE = 1769


def run(scale: float) -> Result:
    """Measure, for 4,000 executions a round at scale 1."""
    planned = executions(max(40, int(4_000 * scale)), workload.DAY)
    aws = StubAws({"SendMessageBatch": REQUEST_S})
    client = aws.client("sqs")  # both use it, so the client's configuration makes no difference
    costs: dict[str, list[Cost]] = {}

    def measured(name: str, work: Callable[[], object]) -> float:
        with aws.measured() as cost:
            work()
        costs.setdefault(name, []).append(cost)
        return len(planned) / cost.cpu_s

    queue = ExecutionsQueue(client, QUEUE_URL, ManualClock(workload.DAY - 119.5))
    candidates = {"ours": partial(measured, "ours", lambda: queue.send(iter(planned)))}
    patient = ExecutionsQueue(client, QUEUE_URL, SystemClock())
    candidates[_LATE] = partial(measured, _LATE, lambda: patient.send(iter(planned), spare_until=math.inf))
    batches = _prepared(planned)
    for threads in _THREADS:
        candidates[f"bare, {threads} threads"] = partial(
            measured, f"bare, {threads} threads", partial(_bare, client, batches, threads)
        )
    per_core = take_turns(candidates, max(2, round(_ROUNDS * min(scale, 1))))
    medians = {name: statistics.median(values) for name, values in per_core.items()}
    walls = {name: [len(planned) / cost.wall_s for cost in found] for name, found in costs.items()}
    best = max(candidates.keys() - {"ours", _LATE}, key=lambda name: medians[name] if "1 " not in name else 0)
    fastest = max(candidates.keys() - {"ours", _LATE}, key=lambda name: statistics.median(walls[name]))
    rows = [[name, f"{medians[name]:,.0f}", f"{statistics.median(walls[name]):,.0f}"] for name in candidates]
    per_core_ratio, wall_ratio = ratio(per_core["ours"], per_core[best]), ratio(walls["ours"], walls[fastest])
    late_share = min(1.0, statistics.median(walls[_LATE]) / statistics.median(walls["ours"]))
    planners = _planners(medians["ours"], late_share)
    return Result(
        "enqueue",
        scale,
        tables=[
            Table(
                f"Executions to the queue, a request of {REQUEST_S * 1000:.0f} ms",
                ["sender", "a second of processor time", "a second of this machine"],
                rows,
            ),
            Table(
                f"{_BURST:,} executions of one window within {_WANTED_S} s",
                [
                    "memory of a planner, MB",
                    "executions a second each",
                    "planners",
                    "late in each second",
                    "planners",
                ],
                [
                    [f"{mb}", *(cell for rate, count in both for cell in (f"{rate:,.0f}", f"{count}"))]
                    for mb, both in planners.items()
                ],
            ),
        ],
        goals=[
            Goal("enqueue: executions per second and core, ours / a bare loop", 0.9, per_core_ratio, True)
        ],
        figures={
            "per_core": medians,
            "per_core_ratio": per_core_ratio,
            "wall_ratio": wall_ratio,
            "late_share": late_share,
            "planners": {mb: [count for _, count in both] for mb, both in planners.items()},
        },
        notes=[
            f"Next to the best bare loop for a core ({best}) {per_core_ratio:.2f}, next to the fastest ({fastest})"
            f" {wall_ratio:.2f} of its speed. Ours encodes each message, counts its delay and reads the answer too.",
            f"A tick that has time sends only late in each second, which takes {1 / late_share:.0f} times as long"
            f" here, at {ratio(per_core[_LATE], per_core['ours']):.2f} of the executions for a second of processor"
            " time. It stops doing so 30 s before its window begins, and sends the rest as fast as possible.",
        ],
    )


def _prepared(executions: list[Execution]) -> list[list[dict[str, Any]]]:
    entries = [
        {
            "Id": str(number % 10),
            "MessageBody": execution.encode(),
            "DelaySeconds": 100 + number % 600,
            "MessageGroupId": execution.tenant,
        }
        for number, execution in enumerate(executions)
    ]
    return [entries[first : first + 10] for first in range(0, len(entries), 10)]


def _bare(client: Any, batches: list[list[dict[str, Any]]], threads: int) -> None:
    def send(batch: list[dict[str, Any]]) -> None:
        client.send_message_batch(QueueUrl=QUEUE_URL, Entries=batch)

    with ThreadPoolExecutor(threads) as pool:
        for future in [pool.submit(send, batch) for batch in batches]:
            future.result()


def _planners(per_core: float, late_share: float) -> dict[int, list[tuple[float, int]]]:
    """How many functions of each size send the burst in time, from the measured processor time; at once, and late."""
    found = {}
    for mb in _PLANNER_MB:
        rates = [per_core * min(1, mb / _MB_PER_CORE) * share for share in (1, late_share)]
        found[mb] = [(rate, math.ceil(_BURST / (rate * _WANTED_S))) for rate in rates]
    return found

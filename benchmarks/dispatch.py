"""Executions through the executor's handler, next to a bare handler that only calls the target."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from benchmarks.executor_stub import ExecutorStub, installed
from benchmarks.measure import ratio, take_turns
from benchmarks.result import Goal, Result, Table

# Medians inside one region. Lambda's is of an asynchronous call, which AWS stores before it answers.
TAKES_S = {
    "GetItem": 0.003,
    "BatchGetItem": 0.003,
    "UpdateItem": 0.005,
    "BatchExecuteStatement": 0.008,
    "Invoke": 0.025,
}
_BATCHES = 40
_ROUNDS = 7


def run(scale: float) -> Result:
    """Measure, for 400 executions in batches of ten a round at scale 1."""
    batches = max(2, int(_BATCHES * scale))
    rounds = max(2, round(_ROUNDS * min(scale, 1)))
    stub = ExecutorStub("Event", TAKES_S)
    events = [stub.event(first * 10) for first in range(batches)]
    client = stub.aws.client("lambda")
    rows = []
    with installed(stub) as handle:
        handle(events[0], None)
        runs: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": []}
        writes: list[int] = []

        def measured(name: str, one: Callable[[dict[str, Any]], object]) -> float:
            stub.writes = 0
            with stub.aws.measured() as cost:
                for event in events:
                    one(event)
            runs[name].append((cost.cpu_s, cost.wall_s))
            if name == "ours":
                writes.append(stub.writes)
            return cost.wall_s

        take_turns(
            {
                "ours": partial(measured, "ours", lambda event: handle(event, None)),
                "bare": partial(measured, "bare", partial(_bare, client)),
            },
            rounds,
        )
    count = batches * 10
    for name, found in runs.items():
        cpu, wall = (statistics.median(values) for values in zip(*found, strict=True))
        rows.append(
            [name, f"{count / wall:,.0f}", f"{wall / batches * 1000:.0f}", f"{cpu / count * 1e6:,.0f}"]
        )
    wall_ratio = ratio([wall for _, wall in runs["bare"]], [wall for _, wall in runs["ours"]])
    cpu_ratio = ratio([cpu for cpu, _ in runs["bare"]], [cpu for cpu, _ in runs["ours"]])
    slowest_s, batch_s = _slowest(max(0.05, 0.5 * min(scale, 1)))
    alone_s, beside_s = _last_start(0.0), _last_start(max(0.1, 2.0 * min(scale, 1)))
    return Result(
        "dispatch",
        scale,
        tables=[
            Table(
                "`Event` calls, one environment, batches of ten",
                ["executor", "executions a second", "a batch, ms", "CPU µs an execution"],
                rows,
            )
        ],
        goals=[
            Goal("dispatch `Event`: executions per second, ours / a bare executor", 0.7, wall_ratio, True),
            Goal("dispatch `Event`: processor time, a bare executor's / ours", 1.0, cpu_ratio, True),
            Goal("dispatch: writes per `Event` run", 1, statistics.median(writes) / count, at_least=False),
            Goal("dispatch: a batch of ten / its slowest", 1.3, batch_s / slowest_s, False),
        ],
        figures={
            "wall_ratio": wall_ratio,
            "cpu_ratio": cpu_ratio,
            "batch_s": batch_s,
            "slowest_s": slowest_s,
            "last_start_s": {"quick calls alone": alone_s, "beside a slow one": beside_s},
        },
        notes=[
            "Requests take "
            + ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in TAKES_S.items())
            + f". By processor time alone the ratio is {cpu_ratio:.2f}.",
            f"A batch of ten whose slowest call takes {slowest_s:.2f} s (the sum is {slowest_s * 5.5:.1f} s)"
            f" took {batch_s:.2f} s.",
            f"The last of ten calls that are waited for starts {alone_s * 1000:.0f} ms after its batch where all are"
            f" quick, and {beside_s * 1000:.0f} ms after it where the first takes seconds.",
        ],
    )


def _bare(client: Any, event: dict[str, Any]) -> None:
    """Parse each message and call the target, ten at a time, without claims, records or reads."""

    def call(record: dict[str, Any]) -> None:
        message = json.loads(record["body"])
        payload = json.dumps(
            {"payload": {"report": "daily"}, "job": message["job"], "at": message["fire_at"]}
        )
        client.invoke(FunctionName=message["job"], InvocationType="Event", Payload=payload.encode())

    with ThreadPoolExecutor(10) as pool:
        for future in [pool.submit(call, record) for record in event["Records"]]:
            future.result()


def _slowest(longest_s: float) -> tuple[float, float]:
    """Ten calls that take 0.1 to 1 of the longest: the duration of the longest, and of the batch."""
    stub = ExecutorStub("RequestResponse")
    waits = iter([longest_s * (number + 1) / 10 for number in range(10)] * 2)

    def slow(request: dict[str, Any]) -> bytes:
        time.sleep(next(waits))
        return b"{}"

    event = stub.event(0)
    with installed(stub) as handle:
        handle(event, None)
        stub.aws.answers["Invoke"] = slow
        began = time.perf_counter()
        handle(event, None)
        return longest_s, time.perf_counter() - began


def _last_start(slow_s: float) -> float:
    """The delay of the last of ten synchronous calls after the start of the batch; the first call takes `slow_s`."""
    stub = ExecutorStub("RequestResponse", {name: TAKES_S[name] for name in TAKES_S if name != "Invoke"})
    found = []
    with installed(stub) as handle:
        for number in range(1, _ROUNDS + 1):
            starts: list[float] = []

            def call(request: dict[str, Any], starts: list[float] = starts) -> bytes:
                starts.append(time.perf_counter())
                time.sleep(slow_s if len(starts) == 1 else 0.0)
                return b"{}"

            event = stub.event(number * 10)
            stub.aws.answers["Invoke"] = call
            began = time.perf_counter()
            handle(event, None)
            found.append(max(starts) - began)
    return min(found)  # other programs on the machine can only add time

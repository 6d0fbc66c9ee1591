"""AWS requests, units and dollars per million runs, counted from runs through the real code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks import workload
from benchmarks.executor_stub import ExecutorStub, installed
from benchmarks.result import Goal, Result, Table
from benchmarks.stub_aws import QUEUE_URL, StubAws
from common.clock import ManualClock
from common.execution import Execution
from common.executions_queue import ExecutionsQueue

PRICES: Mapping[str, float] = json.loads((Path(__file__).parent / "prices.json").read_text())
_MILLION = 1_000_000
_EXECUTOR_GB = 0.25
# At 256 MB a function has this share of a processor.
_PROCESSOR = 256 / 1769
# SQS delays by whole seconds, rounded down, so a message is out half a second early on average, and is held.
_HOLD_S = 0.5
_TARGET_S = 0.5
_RETENTION_MONTHS = 1
_BATCHES = 40


@dataclass(slots=True)
class Bill:
    """Dollars per million runs, by what they are for."""

    lines: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.lines.values())


def run(scale: float) -> Result:
    """Count, over 400 runs of each kind at scale 1."""
    batches = max(2, int(_BATCHES * scale))
    bills = {invocation: _bill(invocation, batches) for invocation in ("Event", "RequestResponse")}
    fill = {messages: _with_fill(bills["Event"], messages) for messages in (10, 5, 2, 1)}
    names = list(dict.fromkeys(name for bill, _ in bills.values() for name in bill.lines))
    rows = [[name, *(f"{bill.lines.get(name, 0):.4f}" for bill, _ in bills.values())] for name in names]
    rows.append(["**sum**", *(f"**{bill.total:.2f}**" for bill, _ in bills.values())])
    for about in next(iter(bills.values()))[1]:
        rows.append([about, *(f"{counted[about]:,.2f}" for _, counted in bills.values())])
    event = bills["Event"][0]
    polling = _polling()
    others = [
        ["Minute8, `Event`", f"{event.total:.2f}", "yes"],
        ["EventBridge Scheduler", f"{PRICES['scheduler_invocation'] * _MILLION:.2f}", "no"],
        ["poll each minute, write each next time", f"{polling.total:.2f}", "no"],
        [
            "the same, and a record of each run",
            f"{polling.total + PRICES['dynamodb_write_unit'] * _MILLION:.2f}",
            "yes",
        ],
    ]
    choices = _choices(event)
    return Result(
        "requests",
        scale,
        tables=[
            Table("Dollars per million runs, full batches", ["for", "`Event`", "`RequestResponse`"], rows),
            Table("Next to others, dollars per million", ["", "dollars", "run history"], others),
            Table(
                "What the fill of batches does to `Event`",
                ["messages a batch", "dollars per million runs"],
                [[str(messages), f"{dollars:.2f}"] for messages, dollars in fill.items()],
            ),
            Table("What each choice costs or would save", ["choice", "dollars per million runs"], choices),
        ],
        goals=[Goal("cost of a million `Event` runs with full history, $", 1.0, event.total, at_least=False)],
        figures={
            invocation: {"lines": bill.lines, "counted": counted, "total": bill.total}
            for invocation, (bill, counted) in bills.items()
        },
        notes=[
            "Requests, units and bytes are counted from runs through the executor's own handler, 1,000 tenants mixed"
            f" evenly; a batch lasts its hold of {_HOLD_S} s on average, and its processor time at 256 MB."
            f" `RequestResponse` adds a target of {_TARGET_S} s. What the target itself costs is its tenant's.",
        ],
    )


def _bill(invocation: str, batches: int) -> tuple[Bill, dict[str, float]]:
    stub = ExecutorStub(invocation)
    count = batches * 10
    events = [stub.event(number * 10) for number in range(batches)]
    with installed(stub) as handle:
        handle(stub.event(10**6), None)
        stub.units.clear()
        with stub.aws.measured() as cost:
            for event in events:
                handle(event, None)
    sends = _sends(count)
    duration_s = _HOLD_S + cost.cpu_s / batches / _PROCESSOR + (_TARGET_S if invocation != "Event" else 0)
    a_run = {name: units / count for name, units in stub.units.items()}
    read, write, request = (
        PRICES[f"{name}"] * _MILLION for name in ("dynamodb_read_unit", "dynamodb_write_unit", "sqs_request")
    )
    lines = {
        "queue: send, receive, delete, in tens": (sends / count + 0.2) * request,
        "queue: tenants apart (fair queue)": (sends / count + 0.2)
        * PRICES["sqs_fair_queue_request"]
        * _MILLION,
        "executor: invocations, in tens": 0.1 * PRICES["lambda_request"] * _MILLION,
        "executor: GB-s": 0.1 * _MILLION * duration_s * _EXECUTOR_GB * PRICES["lambda_gb_s_arm64"],
        "read of the job": a_run["read of the job"] * read,
        "read of the tenant's rules": a_run.get("read of the tenant's rules", 0) * read,
        "write of the run: its history": a_run["write of the run"] * write,
        "planning: entries read, scheduler": _planning(),
    }
    counted = {
        "requests to DynamoDB a run": (cost.requests["GetItem"] + cost.requests["UpdateItem"]) / count,
        "write units a run": a_run["write of the run"],
        "bytes of a run's record": stub.run_bytes,
        "kept for a month, $ more": (stub.run_bytes + 100) * _MILLION / 2**30 * PRICES["dynamodb_gb_month"],
        "a batch lasts, s": duration_s,
    }
    return Bill(lines), counted


def _sends(count: int) -> int:
    """SendMessageBatch requests for so many executions, counted."""
    aws = StubAws()
    queue = ExecutionsQueue(aws.client("sqs"), QUEUE_URL, ManualClock(workload.DAY))
    executions = [
        Execution("tenant", f"job-{number}", workload.DAY, workload.DAY, 1) for number in range(count)
    ]
    with aws.measured() as cost:
        queue.send(executions)
    return cost.requests["SendMessageBatch"]


def _planning() -> float:
    """A due entry of 180 bytes, read strongly in pages; the scheduler's 80 µs an execution at 512 MB."""
    entries = _MILLION * 180 / 4096 * PRICES["dynamodb_read_unit"]
    return entries + _MILLION * 80e-6 / (512 / 1769) * 0.5 * PRICES["lambda_gb_s_arm64"]


def _with_fill(counted: tuple[Bill, dict[str, float]], messages: int) -> float:
    """Where fewer than ten messages come at once: receive, delete and invocation are paid for each batch."""
    bill, figures = counted
    request, fair = PRICES["sqs_request"] * _MILLION, PRICES["sqs_fair_queue_request"] * _MILLION
    a_batch = 2 * (request + fair) + PRICES["lambda_request"] * _MILLION
    work_s = (figures["a batch lasts, s"] - _HOLD_S) * messages / 10
    gb_s = (_HOLD_S + work_s) * _EXECUTOR_GB * PRICES["lambda_gb_s_arm64"] * _MILLION
    rest = bill.total - 0.1 * a_batch - bill.lines["executor: GB-s"]
    return rest + (a_batch + gb_s) / messages


def _polling() -> Bill:
    """A build that asks each minute for what is due by an index on the next time, and writes the next one after it.

    The write costs a unit for the item, and two for the index: the key changes, which is a delete and a put.
    """
    write, read = PRICES["dynamodb_write_unit"] * _MILLION, PRICES["dynamodb_read_unit"] * _MILLION
    lines = {
        "write of the next time": 3 * write,
        "read of what is due": 0.5 * 700 / 4096 * read,
        "invocations": 0.1 * PRICES["lambda_request"] * _MILLION,
        "GB-s": 0.1 * _MILLION * 0.3 * 0.25 * PRICES["lambda_gb_s_arm64"],
    }
    return Bill(lines)


def _choices(event: Bill) -> list[list[str]]:
    hold = 0.1 * _MILLION * _HOLD_S * _EXECUTOR_GB * PRICES["lambda_gb_s_arm64"]
    return [
        ["holding each batch to its second (else late by as much)", f"{hold:.2f}"],
        ["fair queue (else a flood delays other tenants)", f"{event.lines['queue: tenants apart (fair queue)']:.2f}"],
        ["sending in the last quarter of each second alone, so that a batch is held for 0.13 s instead (would save)",
         f"{hold * 0.75:.2f}"],
        ["strong read of the job (an eventual one may miss a pause of the last second)",
         f"{event.lines['read of the job'] / 2:.2f}"],
        ["a second write per run (`running`, then the end), as `RequestResponse` has it",
         f"{PRICES['dynamodb_write_unit'] * _MILLION:.2f}"],
    ]  # fmt: skip

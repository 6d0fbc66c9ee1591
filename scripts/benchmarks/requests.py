"""AWS requests, units and dollars per million runs, counted from runs through the real code."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from common.clock import SystemClock
from common.planning.execution import Execution
from common.planning.queue import ExecutionsQueue
from common.storage.table import Table as DynamoTable
from common.tenants.rules_cache import KnownTenants
from scripts.benchmarks import workload
from scripts.benchmarks.executor_stub import TAKES_S, ExecutorStub, installed
from scripts.benchmarks.strict_lateness import DEFAULT_MB
from scripts.benchmarks.stub_aws import QUEUE_URL, StubAws, send_message_batch
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table, kept
from tests.manual_clock import ManualClock

_MILLION = 1_000_000
EXECUTOR_MB = DEFAULT_MB
EXECUTOR_GB = EXECUTOR_MB / 1024
# A function of 1,769 MB has a whole processor: https://docs.aws.amazon.com/lambda/latest/dg/configuration-memory.html
_PROCESSOR_GB = 1769 / 1024
# A batch waits for its first and its last answer with no other work.
_WAY_S = TAKES_S["BatchGetItem"] + TAKES_S["Invoke"]
_TARGET_S = 0.5
# The counted figures that the table shows.
_COUNTED = (
    *("requests to DynamoDB a run", "write units a run", "bytes of a run's record"),
    *("a batch is held, s", "its work, s", "waits for answers, s"),
)
_WITHOUT_TLS = "processor time of a batch without TLS, s"
# The usual time of a SendMessageBatch inside one region.
_REQUEST_S = 0.01
# The time between a tick and its window.
_AHEAD_S = 120
_ENTRY_BYTES = 180
_BATCHES = 40
_ROUNDS = 7
_SENT = 8_000
_HOURS_A_MONTH = 730
_RUNS_A_MONTH = (_MILLION, 30 * _MILLION, 300 * _MILLION)


@dataclass(slots=True)
class Bill:
    """Dollars per million runs, by purpose."""

    lines: dict[str, float]

    @property
    def total(self) -> float:
        return sum(self.lines.values())


def run(scale: float) -> Result:
    """Count, over 400 runs of each kind at scale 1."""
    batches = max(2, int(_BATCHES * scale))
    held = _held(max(100, int(_SENT * scale)))
    bills = {"Event": _bill("Event", batches, held)}
    bills["RequestResponse"] = _bill("RequestResponse", batches, held, bills["Event"][1][_WITHOUT_TLS])
    fill = {messages: _with_fill(*bills["Event"], messages) for messages in (10, 5, 2, 1)}
    names = list(dict.fromkeys(name for bill, _ in bills.values() for name in bill.lines))
    rows = [[name, *(f"{bill.lines.get(name, 0):.4f}" for bill, _ in bills.values())] for name in names]
    rows.append(["**sum**", *(f"**{bill.total:.2f}**" for bill, _ in bills.values())])
    for about in _COUNTED:
        rows.append([about, *(f"{counted[about]:,.2f}" for _, counted in bills.values())])
    event, _ = bills["Event"]
    polling = _polling()
    alternatives = [
        ["Minute8, `Event`", f"{event.total:.2f}", "yes"],
        ["EventBridge Scheduler", f"{PRICES['scheduler_invocation'] * _MILLION:.2f}", "no"],
        ["poll each minute, write each next time", f"{polling.total:.2f}", "no"],
        [
            "the same, and a record of each run",
            f"{polling.total + PRICES['dynamodb_write_unit'] * _MILLION:.2f}",
            "yes",
        ],
    ]
    return Result(
        "requests",
        scale,
        tables=[
            Table("Dollars per million runs, full batches", ["for", "`Event`", "`RequestResponse`"], rows),
            Table("Next to others, dollars per million", ["", "dollars", "run history"], alternatives),
            Table(
                "What the fill of batches does to `Event`",
                ["messages a batch", "dollars per million runs"],
                [[str(messages), f"{dollars:.2f}"] for messages, dollars in fill.items()],
            ),
            Table(
                "What provisioned pollers add, dollars",
                [
                    "`minimumPollers`",
                    "a month",
                    *(f"per million, at {_count(runs)} a month" for runs in _RUNS_A_MONTH),
                ],
                _pollers(),
            ),
        ],
        goals=[Goal("cost of a million `Event` runs with full history, $", 1.0, event.total, at_least=False)],
        figures={
            invocation: {"lines": bill.lines, "counted": counted, "total": bill.total}
            for invocation, (bill, counted) in bills.items()
        }
        | {"held": asdict(held)},
        notes=[
            f"A batch lasts while it is held, and then as long as a batch of {EXECUTOR_MB} MB in Strict lateness."
            f" It is held for {held.mean_s:.3f} s on average, measured with the queue's own sender,"
            f" {int(_SENT * scale):,} executions and the real clock; {held.late:.1%} came out late."
            f" That sender handles {held.rate:,.0f} executions a second and processor, which gives the planner's GB-s."
            " The rules are those of 1,000 tenants with a million runs a day in one environment."
            f" `RequestResponse` adds a target of {_TARGET_S} s.",
        ],
    )


def _bill(
    invocation: str, batches: int, held: Held, event_cpu_s: float | None = None
) -> tuple[Bill, dict[str, float]]:
    stub = ExecutorStub(invocation)
    count = batches * 10
    events = [stub.event(number * 10) for number in range(batches)]
    costs = []
    with installed(stub) as handle:
        for event in events:  # so that the tenants are cached: those reads are counted separately
            handle(event, None)
        for _ in range(_ROUNDS):
            stub.units.clear()
            with stub.aws.measured() as cost:
                for event in events:
                    handle(event, None)
            costs.append(cost)
    sends = _sends(count)
    # The least: other programs on the machine can only add time.
    cpu_s = min(cost.cpu_s for cost in costs) / batches
    # The effect of a quota and TLS was measured for `Event`; other kinds are scaled by their work here.
    work_s = (_strict_batch_s(EXECUTOR_MB) - _WAY_S) * cpu_s / (event_cpu_s or cpu_s)
    way_s = (
        _WAY_S if invocation == "Event" else _WAY_S - TAKES_S["Invoke"] + _TARGET_S + TAKES_S["UpdateItem"]
    )
    duration_s = held.mean_s + work_s + way_s
    a_run = {name: units / count for name, units in stub.units.items()}
    read, write, request = (
        PRICES[f"{name}"] * _MILLION for name in ("dynamodb_read_unit", "dynamodb_write_unit", "sqs_request")
    )
    rules = _rules_read_units()
    lines = {
        "queue: send, receive, delete, in tens": (sends / count + 0.2) * request,
        "queue: tenants apart (fair queue)": (sends / count + 0.2)
        * PRICES["sqs_fair_queue_request"]
        * _MILLION,
        "executor: invocations, in tens": 0.1 * PRICES["lambda_request"] * _MILLION,
        "executor: GB-s": _executor_gb_s(duration_s),
        "read of the job": a_run["read of the job"] * read,
        "read of the tenants' rules": rules * read,
        "write of the run: its history": a_run["write of the run"] * write,
        "planning: entries read": _MILLION * _ENTRY_BYTES / 4096 * read / _MILLION,
        "planning: GB-s, waiting for the late part of each second": _planner_gb_s(held.rate),
    }
    requests = costs[-1].requests
    counted = {
        "requests to DynamoDB a run": sum(
            requests[name] for name in ("GetItem", "BatchGetItem", "UpdateItem", "BatchExecuteStatement")
        )
        / count,
        "write units a run": a_run["write of the run"],
        "bytes of a run's record": stub.run_bytes,
        "a batch is held, s": held.mean_s,
        "its work, s": work_s,
        _WITHOUT_TLS: cpu_s,
        "waits for answers, s": way_s,
    }
    return Bill(lines), counted


def _strict_batch_s(memory_mb: int) -> float:
    """The time of ten warm `Event` calls with this memory, by the kept results of `strict_lateness`."""
    (strict,) = kept(["strict_lateness"])
    return float(strict.figures[f"{memory_mb} MB, batches of 10"]["billed_s"])


def _executor_gb_s(duration_s: float, memory_mb: int = EXECUTOR_MB) -> float:
    """Dollars for batches of ten with this duration."""
    return 0.1 * _MILLION * duration_s * memory_mb / 1024 * PRICES["lambda_gb_s_arm64"]


def _planner_gb_s(rate: float) -> float:
    """Dollars for planners with this rate on a whole processor. With less memory they are slower and cheaper alike."""
    return _MILLION / rate * _PROCESSOR_GB * PRICES["lambda_gb_s_arm64"]


def _rules_read_units() -> float:
    """The cost per run when one environment runs a million a day for 1,000 tenants; measured over an hour."""
    stub = ExecutorStub("Event")
    known = KnownTenants(DynamoTable(stub.aws.client("dynamodb"), "tenants"))
    runs = round(_MILLION / 24)
    for number in range(runs):
        known.rules(f"tenant-{number % workload.TENANTS}", workload.DAY + number * 3600 / runs)
    return stub.units["read of the tenant's rules"] / runs


def _count(runs: int) -> str:
    return f"{runs // _MILLION:,} M"


def _sends(count: int) -> int:
    """Counted SendMessageBatch requests for this many executions."""
    aws = StubAws()
    queue = ExecutionsQueue(aws.client("sqs"), QUEUE_URL, ManualClock(workload.DAY))
    planned = [Execution("tenant", f"job-{n}", workload.DAY, workload.DAY, 1) for n in range(count)]
    with aws.measured() as cost:
        queue.send(planned)
    return cost.requests["SendMessageBatch"]


def _with_fill(bill: Bill, figures: Mapping[str, float], messages: int) -> float:
    """The cost with fewer than ten messages at once: each batch pays for receive, delete and invocation."""
    request, fair = PRICES["sqs_request"] * _MILLION, PRICES["sqs_fair_queue_request"] * _MILLION
    a_batch = 2 * (request + fair) + PRICES["lambda_request"] * _MILLION
    work_s = figures["its work, s"] * messages / 10
    gb_s = 10 * _executor_gb_s(figures["a batch is held, s"] + figures["waits for answers, s"] + work_s)
    rest = bill.total - 0.1 * a_batch - bill.lines["executor: GB-s"]
    return rest + (a_batch + gb_s) / messages


def _polling() -> Bill:
    """A simple design that queries an index of next times each minute, and writes the following time.

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


@dataclass(frozen=True, slots=True)
class Held:
    """The result for some executions that were sent late in each second.

    `mean_s` is counted from when their requests left. `late` is the share that became visible after its second, by at
    most `latest_s`, if each reached SQS when its answer left. `rate` is executions per second.
    """

    mean_s: float
    late: float
    latest_s: float
    rate: float


def _executions(count: int, start: int) -> list[Execution]:
    """Executions as a tick plans them: of many tenants, due at different seconds of the window from `start`."""
    planned = []
    for number in range(count):
        job, at = workload.job(number), start + number % 600
        planned.append(Execution(job.tenant, job.job_id, at, at, 1))
    return planned


def _held(count: int) -> Held:
    """Send this many, which takes some seconds."""
    aws = StubAws({"SendMessageBatch": _REQUEST_S})
    sent: list[tuple[float, list[dict[str, Any]]]] = []

    def keep_time(request: dict[str, Any]) -> bytes:
        sent.append((time.time(), request["Entries"]))
        return send_message_batch(request)

    aws.answers["SendMessageBatch"] = keep_time
    planned = _executions(count, int(time.time()) + _AHEAD_S)
    ExecutionsQueue(aws.client("sqs"), QUEUE_URL, SystemClock()).send(planned, send_late_until=math.inf)
    early = [
        json.loads(entry["MessageBody"])["due_at"] - sent_at - entry["DelaySeconds"]
        for sent_at, entries in sent
        for entry in entries
    ]
    late = [_REQUEST_S - early_s for early_s in early if early_s < _REQUEST_S]
    return Held(
        mean_s=statistics.mean(max(0.0, early_s) for early_s in early),
        late=len(late) / count,
        latest_s=max(late, default=0.0),
        rate=_rate([sent_at for sent_at, entries in sent for _ in entries]),
    )


def _rate(times: list[float]) -> float:
    """Executions per second, in the best second: other programs on the machine can only slow it down."""
    # Half a second off, so that no late part is divided: executions are sent around the end of a second.
    return max(Counter(int(at + 0.5) for at in times).values())


def _pollers() -> list[list[str]]:
    """Provisioned pollers are paid for by the hour, so what they add to a run depends on how many there are."""
    rows = []
    for pollers in (2, 20, 200):
        month = pollers * PRICES["lambda_sqs_poller_hour"] * _HOURS_A_MONTH
        a_million = [f"{month * _MILLION / runs:,.2f}" for runs in _RUNS_A_MONTH]
        rows.append([str(pollers), f"{month:,.2f}", *a_million])
    return rows

"""Bursts on the embedded AWS, by the target's own clock: packs, single messages, and a bare queue and Lambda function.

The bare function calls the same target, once for each message and one after the other, and records nothing. With calls
that are awaited it is the published design's own form.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.bare_path import Engine, engine
from benchmarks.measure import percentile
from benchmarks.result import Goal, Result, Table
from common.clock import SystemClock
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue
from common.planning.packs import PACK_FROM, packed
from common.timing.instants import rfc3339
from scripts.demo import functions
from scripts.demo.workload import Registration

_BURSTS = {"Event": (500, 2_000), "RequestResponse": (500,)}
# Small bursts are over in a moment, so they are played several times.
_SMALL, _TIMES = 40, 5
# An awaited call lasts as long as the sample target works.
_WORKS_S = {"Event": 0.0, "RequestResponse": 0.05}
_WAYS = ("bare", "single", "packs")
_JOBS = 500
_TENANTS = 20
_TARGET = """
import time
def handle(event, context):
    print("called", event["minute8"]["due_at"], time.time())
    time.sleep(event["payload"]["works_s"])
"""
_BARE = """
import json, time
import boto3
client = boto3.client("lambda")
def handle(event, context):
    for record in event["Records"]:
        message = json.loads(record["body"])
        time.sleep(max(0, message["due_at"] - time.time()))
        payload = json.dumps({"payload": message["payload"], "minute8": {"due_at": message["at"]}})
        answer = client.invoke(
            FunctionName=message["target"], InvocationType=message["invocation"], Payload=payload.encode()
        )
        answer["Payload"].read()
"""
# From the sending of a burst to its second.
_AHEAD_S = 12
_PATIENCE_S = 60


@dataclass(frozen=True, slots=True)
class _Case:
    invocation: str
    count: int
    way: str


def run(scale: float) -> Result:
    """Play each burst by each way, in turn; one by one, since each would slow the others down."""
    found: dict[_Case, list[float]] = {}
    with engine() as aws:
        bursts = _Bursts(aws, max(20, int(_JOBS * scale)))
        for invocation, counts in _BURSTS.items():
            for way in _WAYS:
                bursts.play(_Case(invocation, max(20, int(counts[0] * scale)), way))  # starts the processes
            for count in counts:
                for way in _WAYS:
                    case = _Case(invocation, max(20, int(count * scale)), way)
                    found[case] = bursts.play(case)
        for n in range(max(1, round(_TIMES * scale)) * len(_WAYS)):
            case = _Case("Event", _SMALL, _WAYS[n % len(_WAYS)])
            found[case] = sorted(found.get(case, []) + bursts.play(case))
    rows = [_row(case, late) for case, late in found.items()]
    bare, ours = (_median(found, "Event", max(20, int(500 * scale)), way) for way in ("bare", "packs"))
    waited = [_of(found, "RequestResponse", max(20, int(500 * scale)), way) for way in ("bare", "packs")]
    return Result(
        "bursts",
        scale,
        tables=[Table("Lateness of calls at the target, s", ["calls", "way", "p50", "p99", "last", "arrived"], rows)],
        goals=[
            Goal("bursts: 40 `Event` calls, p50, s", 0.15, _median(found, "Event", _SMALL, "packs"), at_least=False),
            Goal("bursts: 500 `Event` calls, p50, packs / bare", 1.2, ours / bare, at_least=False),
            Goal("bursts: 500 awaited calls, p50, packs / the published form", 0.5,
                 statistics.median(waited[1]) / statistics.median(waited[0]), at_least=False),
            Goal("bursts: 500 awaited calls, last, packs / the published form", 0.5,
                 max(waited[1]) / max(waited[0]), at_least=False),
        ],
        figures={f"{case.count} {case.invocation} {case.way}": late for case, late in found.items()},
        notes=[
            "Each way had a burst of 500 before, to start its processes. An awaited target works for 0.05 s, as the"
            " sample target does. Packs: as a tick or planner sends them. Single: the same with `packFrom: 0`."
            f" The burst of {_SMALL} was played several times, and its calls are counted together."
        ],
    )  # fmt: skip


class _Bursts:
    def __init__(self, aws: Engine, jobs: int) -> None:
        self._stage = aws.stage
        self._target = functions.create(aws.stage.client, "clocked-target", _TARGET, timeout_s=30)
        actions = (
            "sqs:ReceiveMessage",
            "sqs:DeleteMessage",
            "sqs:GetQueueAttributes",
            "lambda:InvokeFunction",
        )
        functions.create(aws.stage.client, "burst-bare", _BARE, timeout_s=60, actions=actions)
        sqs = aws.stage.client("sqs")
        self._sqs = sqs
        self._bare = sqs.create_queue(QueueName="burst-bare", Attributes={"VisibilityTimeout": "120"})[
            "QueueUrl"
        ]
        arn = sqs.get_queue_attributes(QueueUrl=self._bare, AttributeNames=["QueueArn"])["Attributes"][
            "QueueArn"
        ]
        aws.stage.client("lambda").create_event_source_mapping(
            EventSourceArn=arn,
            FunctionName="burst-bare",
            BatchSize=10,
            ScalingConfig={"MaximumConcurrency": 10},
        )
        url = sqs.get_queue_url(QueueName=f"{aws.stage.name}-executions")["QueueUrl"]
        self._queue = ExecutionsQueue(sqs, url, SystemClock())
        tenants = [f"tenant-{n}" for n in range(_TENANTS)]
        aws.stage.allow(tenants, self._target)
        self._jobs = {
            invocation: aws.stage.register(
                [
                    Registration(
                        tenants[n % _TENANTS],
                        f"{invocation.lower()}-{n}",
                        {
                            "schedule": {"cron": "0 0 1 1 *"},
                            "target": {"kind": "lambda", "arn": self._target, "invocation": invocation},
                            "payload": {"works_s": _WORKS_S[invocation]},
                        },
                    )
                    for n in range(jobs)
                ],
                lambda: None,
            )
            for invocation in _BURSTS
        }
        time.sleep(10)  # fire times in the past of a job's creation would be skipped

    def play(self, case: _Case) -> list[float]:
        """The lateness of each call of one burst."""
        began = time.time()
        due_at = int(began) + _AHEAD_S
        if case.way == "bare":
            self._send_bare(case, due_at)
        else:
            self._queue.send_packs(
                packed(self._executions(case, due_at), PACK_FROM if case.way == "packs" else 0)
            )
        assert time.time() < due_at - 1, "this machine was too slow to send them before their second"
        until = due_at + _PATIENCE_S
        late: list[float] = []
        while len(late) < case.count and time.time() < until:
            time.sleep(2)
            late = list(self._calls(due_at, began))
        return sorted(late)

    def _executions(self, case: _Case, due_at: int) -> Iterator[Execution]:
        """Each job with as many fire times as it takes, all due at one second."""
        jobs = self._jobs[case.invocation]
        for n in range(case.count):
            job = jobs[n % len(jobs)]
            yield Execution(job.tenant, job.job_id, due_at - n // len(jobs), due_at, job.schedule_revision)

    def _send_bare(self, case: _Case, due_at: int) -> None:
        message = {
            "due_at": due_at,
            "at": due_at,
            "target": self._target,
            "invocation": case.invocation,
            "payload": {"works_s": _WORKS_S[case.invocation]},
        }
        for first in range(0, case.count, 10):
            delay_s = int(due_at - time.time())
            entries: Any = [
                {"Id": str(n), "MessageBody": json.dumps(message), "DelaySeconds": delay_s}
                for n in range(min(10, case.count - first))
            ]
            self._sqs.send_message_batch(QueueUrl=self._bare, Entries=entries)

    def _calls(self, due_at: int, since: float) -> Iterator[float]:
        names = {str(due_at), rfc3339(due_at)}
        for event in self._stage.log_of("clocked-target", since):
            words = event["message"].split()
            if words[:1] == ["called"] and words[1] in names:
                yield float(words[2]) - due_at


def _of(found: dict[_Case, list[float]], invocation: str, count: int, way: str) -> list[float]:
    return found[_Case(invocation, count, way)]


def _median(found: dict[_Case, list[float]], invocation: str, count: int, way: str) -> float:
    return statistics.median(_of(found, invocation, count, way))


def _row(case: _Case, late: list[float]) -> list[str]:
    figures = [statistics.median(late), percentile(late, 0.99), max(late)] if late else [0.0] * 3
    calls = f"{case.count:,} `{case.invocation}`"
    return [calls, case.way, *(f"{figure:.2f}" for figure in figures), f"{len(late):,}"]

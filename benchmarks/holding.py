"""How long executors hold the messages of a tick with time to spare, and how fast it sends, in real time."""

from __future__ import annotations

import json
import math
import statistics
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

from benchmarks import workload
from benchmarks.stub_aws import QUEUE_URL, StubAws, send_message_batch
from common.clock import SystemClock
from common.planning.execution import Execution
from common.planning.executions_queue import ExecutionsQueue

# The usual time of a SendMessageBatch inside one region.
REQUEST_S = 0.01
# The time between a tick and its window.
_AHEAD_S = 120


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


def executions(count: int, start: int) -> list[Execution]:
    """Executions as a tick plans them: of many tenants, due at different seconds of the window from `start`."""
    made = []
    for number in range(count):
        job, at = workload.job(number), start + number % 600
        made.append(Execution(job.tenant, job.job_id, at, at, 1))
    return made


def measure(count: int) -> Held:
    """Send this many, which takes some seconds."""
    aws = StubAws({"SendMessageBatch": REQUEST_S})
    left: list[tuple[float, list[dict[str, Any]]]] = []

    def keep(request: dict[str, Any]) -> bytes:
        left.append((time.time(), request["Entries"]))
        return send_message_batch(request)

    aws.answers["SendMessageBatch"] = keep
    planned = executions(count, int(time.time()) + _AHEAD_S)
    ExecutionsQueue(aws.client("sqs"), QUEUE_URL, SystemClock()).send(planned, spare_until=math.inf)
    early = [
        json.loads(entry["MessageBody"])["due_at"] - left_at - entry["DelaySeconds"]
        for left_at, entries in left
        for entry in entries
    ]
    late = [REQUEST_S - early_s for early_s in early if early_s < REQUEST_S]
    return Held(
        mean_s=statistics.mean(max(0.0, early_s) for early_s in early),
        late=len(late) / count,
        latest_s=max(late, default=0.0),
        rate=_rate([left_at for left_at, entries in left for _ in entries]),
    )


def _rate(sent_at: list[float]) -> float:
    """Executions per second, in the best second: other programs on the machine can only slow it down."""
    # Half a second off, so that no late part is divided: executions are sent around the end of a second.
    return max(Counter(int(at + 0.5) for at in sent_at).values())

"""The executor under the conditions of a small function: a share of a processor, and TLS on each request."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common.limits import MAX_IN_A_PACK
from common.planning.packs import Wake
from common.planning.queue import BATCH_SIZE
from scripts.benchmarks.executor_stub import ENVIRONMENT, TAKES_S, ExecutorStub, inserted
from scripts.benchmarks.strict_aws import TlsServer, Worker, worker
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import track
from scripts.parameters import DEFAULTS

MEMORIES_MB = (192, 512, 1024)
BATCHES = (1, 10, BATCH_SIZE * MAX_IN_A_PACK)
_BARE = "bare boto3, batches of 10"
DEFAULT_MB = int(DEFAULTS["executorMemoryMb"])
# Of a full batch the first one would be held longer.
_WAKE = {"Records": [{"messageId": "wake", "body": Wake(0).encode(), "attributes": {}}]}
_COLUMNS = ("cold_s", "woken_s", "half_s", "warm_s", "billed_s", "recorded_off_s")
_ENVIRONMENTS = 5
_WARM = 8


def run(scale: float) -> Result:
    """Measure five environments of each size at scale 1. Raises QuotaError where this machine has no quotas."""
    settings = [(memory_mb, batch) for memory_mb in MEMORIES_MB for batch in BATCHES]
    rounds: dict[str, list[dict[str, float]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as directory, (aws := _Aws(Path(directory))).server:
        for _ in track(range(max(1, round(_ENVIRONMENTS * scale))), "environments"):
            for memory_mb, batch in settings:
                once = environment(aws, memory_mb, batch) | woken(aws, memory_mb, batch)
                rounds[f"{memory_mb} MB, batches of {batch}"].append(once)
            rounds[_BARE].append(environment(aws, DEFAULT_MB, 10, bare=True))
    # The least: other programs can only add time.
    figures = {
        name: {key: min(each[key] for each in environments) for key in environments[0]}
        for name, environments in rounds.items()
    }

    def of_default(batch: int) -> dict[str, float]:
        return figures[f"{DEFAULT_MB} MB, batches of {batch}"]

    rows = [
        [
            f"{memory_mb:,}",
            str(batch),
            *(f"{batch_s[name]:.3f}" if name in batch_s else "" for name in _COLUMNS),
            f"{batch_s['cpu_s'] / batch * 1000:.2f}",
            f"{executor_dollars(memory_mb, batch, batch_s['billed_s']):.3f}",
        ]
        for (memory_mb, batch), batch_s in zip([*settings, (DEFAULT_MB, 10)], figures.values(), strict=True)
    ]
    rows[-1][:2] = [f"{DEFAULT_MB} (bare boto3)", "10"]
    rows[-1][3], rows[-1][7] = "no wakes", "no record"
    head = [
        "memory, MB",
        "executions at once",
        "last call, cold, s",
        "last call, woken, s",
        "median call, warm, s",
        "last call, warm, s",
        "batch, warm, s",
        "record's start is off by, s",
        "CPU ms an execution",
        "executor's $ a million",
    ]
    return Result(
        "strict_lateness",
        scale,
        tables=[Table("`Event` calls under a quota and TLS", head, rows)],
        goals=[
            Goal(
                "lateness of a lone execution, warm, default memory, s", 0.03, of_default(1)["warm_s"], False
            ),
            Goal(
                "processor time of an `Event` execution in a batch of ten, TLS, ms",
                0.5,
                of_default(10)["cpu_s"] * 100,
                False,
            ),
            Goal(
                "processor time of an `Event` execution, TLS: a bare boto3 executor's / ours",
                1.3,
                figures[_BARE]["cpu_s"] / of_default(10)["cpu_s"],
                at_least=True,
            ),
        ],
        figures=figures,
        notes=[
            f"Of {max(1, round(_ENVIRONMENTS * scale))} environments the quickest, of its {_WARM} warm batches the"
            " median. A batch comes when it is due; SQS delivers up to a second before, which hides as much of a cold"
            " start. Requests take "
            + ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in TAKES_S.items())
            + ". The init phase is not held to the quota. What the record is"
            " off by is the median distance of a run's recorded start from the target's own clock.",
        ],
    )


def executor_dollars(memory_mb: int, batch: int, billed_s: float) -> float:
    """What a million such executions cost in invocations and GB-s of the executor."""
    gb_s = billed_s * memory_mb / 1024 * PRICES["lambda_gb_s_arm64"]
    return (PRICES["lambda_request"] + gb_s) * 1_000_000 / batch


def environment(aws: _Aws, memory_mb: int, batch: int, *, bare: bool = False) -> dict[str, float]:
    """One environment: init at full speed, a cold batch, warm batches. Returns medians of the warm ones."""
    with worker("bare" if bare else "executor", aws.environment, memory_mb) as process:
        cold, *warm = (aws.handled(process, batch, records=not bare) for _ in range(1 + _WARM))
    return {
        "init_s": process.init_s,
        "cold_s": cold["late_s"],
        "cold_half_s": cold["half_s"],
        "cold_took_s": cold["took_s"],
        "half_s": statistics.median(each["half_s"] for each in warm),
        "warm_s": statistics.median(each["late_s"] for each in warm),
        "billed_s": statistics.median(each["took_s"] for each in warm),
        "cpu_s": statistics.median(each["cpu_s"] for each in warm),
        "recorded_off_s": statistics.median(each["recorded_off_s"] for each in warm),
        "connections": aws.connections_since(),
    }


def woken(aws: _Aws, memory_mb: int, batch: int) -> dict[str, float]:
    """An environment that was woken: its first batch, and how long its first wake took, and one after the batch."""
    with worker("executor", aws.environment, memory_mb) as process:
        first_wake = process.handle(_WAKE)
        first = aws.handled(process, batch, records=True)
        return {
            "woken_half_s": first["half_s"],
            "woken_s": first["late_s"],
            "woken_took_s": first["took_s"],
            "first_wake_s": first_wake["took_s"],
            "wake_s": process.handle(_WAKE)["took_s"],
        }


class _Aws:
    """The stub's DynamoDB and Lambda behind TLS."""

    def __init__(self, directory: Path) -> None:
        self._stub = ExecutorStub("Event")
        self._stub.aws.answers["ChangeMessageVisibilityBatch"] = _all_changed
        self._called_at: dict[str, float] = {}
        self._recorded_at: dict[str, float] = {}
        self._sent = 0
        self.server = TlsServer(directory, self._answer)
        self.environment = {
            **ENVIRONMENT,
            **self.server.environment,
            "AWS_LAMBDA_FUNCTION_NAME": "minute8-bench-executor",
        }

    def handled(self, process: Worker, batch: int, *, records: bool) -> dict[str, float]:
        """Let the process handle a batch that is due now; returns the lateness of its last call, and its duration."""
        event = self._stub.event(self._sent, batch, -(-batch // BATCH_SIZE))
        self._sent += batch
        self._called_at.clear()
        self._recorded_at.clear()
        began = time.time()
        answer = process.handle(event)
        assert not answer.pop("answer")["batchItemFailures"]
        assert len(self._called_at) == batch
        assert self._recorded_at.keys() == (self._called_at.keys() if records else set())
        calls = self._called_at.values()
        off_s = statistics.median(
            abs(at - self._recorded_at.get(job, at)) for job, at in self._called_at.items()
        )
        return answer | {
            "late_s": max(calls) - began,
            "half_s": statistics.median(calls) - began,
            "recorded_off_s": off_s,
        }

    def connections_since(self) -> float:
        """The calls since the last request for them."""
        count, self.server.connections = self.server.connections, 0
        return count

    def _answer(self, operation: str, request: dict[str, Any]) -> tuple[int, bytes]:
        """The stub's answer, after AWS's usual time."""
        if operation == "Invoke":
            self._called_at[request["minute8"]["job_id"]] = time.time()
        for job, at in _recorded(operation, request):
            assert job not in self._recorded_at  # a second write would record a failure
            self._recorded_at[job] = at
        time.sleep(TAKES_S.get(operation, 0.005))
        return 202 if operation == "Invoke" else 200, self._stub.aws.answers[operation](request)


def _recorded(operation: str, request: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """The starts in the records that a request writes, by their jobs."""
    if operation == "UpdateItem":
        values = request["ExpressionAttributeValues"]
        yield values[":job_id"]["S"], float(values[":started_at"]["N"])
    elif operation == "BatchExecuteStatement":
        for statement in request["Statements"]:
            item = inserted(statement)
            yield item["job_id"]["S"], float(item["started_at"]["N"])


def _all_changed(request: dict[str, Any]) -> bytes:
    return json.dumps({"Successful": [{"Id": entry["Id"]} for entry in request["Entries"]]}).encode()

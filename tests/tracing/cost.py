"""What spans cost a batch of ten, next to none, over the benchmarks' stub of AWS:

python -m tests.tracing.cost                       # a collector of the tests, then one that never answers
python -m tests.tracing.cost http://127.0.0.1:6006 # your own collector
"""

from __future__ import annotations

import argparse
import itertools
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from unittest import mock

from common.tracing.export import span_export
from executor import handler
from scripts import build_layer
from scripts.benchmarks.executor_stub import ENVIRONMENT, ExecutorStub, installed
from tests.tracing.collector import open_collector

_BATCHES = 200
_TAKES_S = {
    "GetItem": 0.0,
    "BatchGetItem": 0.0,
    "UpdateItem": 0.0,
    "BatchExecuteStatement": 0.0,
    "Invoke": 0.0,
}
_IMPORT = "import time; b = time.process_time(); from executor import handler; handler._executor(); print({})"


@contextmanager
def traced(endpoint: str) -> Iterator[None]:
    """During the block, the handler's processes export to this collector; empty: to none."""
    with mock.patch.dict(ENVIRONMENT, OTLP_ENDPOINT=endpoint or "off"):
        handler._spans.cache_clear()
        span_export.cache_clear()
        yield
    handler._spans.cache_clear()
    span_export.cache_clear()


def batches(
    endpoint: str, numbers: Iterator[int], count: int, warm_up: int = 5
) -> tuple[list[float], list[float]]:
    """Milliseconds of the processor, and in all, of each batch."""
    stub, cpu, wall = ExecutorStub("Event", _TAKES_S), [], []
    with traced(endpoint), installed(stub) as handle:
        for _ in range(count + warm_up):
            event = stub.event(next(numbers) * 10)
            for record in event["Records"]:
                record["attributes"] = {"SentTimestamp": str(int((time.time() - 60) * 1_000))}
            began = time.process_time(), time.perf_counter()
            handle(event, None)
            cpu.append((time.process_time() - began[0]) * 1_000)
            wall.append((time.perf_counter() - began[1]) * 1_000)
    return cpu[warm_up:], wall[warm_up:]


def cold(endpoint: str) -> tuple[float, int]:
    """Processor milliseconds of a cold start before its first batch, and the modules that it has loaded."""
    environment = {**ENVIRONMENT, "PATH": "/usr/bin:/bin", "OTLP_ENDPOINT": endpoint or "off"}
    starts = [
        subprocess.run(
            [sys.executable, "-c", _IMPORT.format(f"time.process_time() - b, len({modules})")],
            cwd=build_layer.ROOT,
            env={**environment, "AWS_DEFAULT_REGION": "us-east-1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        for modules in ["__import__('sys').modules"] * 5
    ]
    return statistics.median(float(s) * 1_000 for s, _ in starts), int(starts[0][1])


def main() -> None:
    """Measure in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("collector", nargs="?", help="its base address; without, one of the tests' own")
    named, numbers = parser.parse_args().collector, itertools.count(1)
    with nullcontext() if named else open_collector() as own:
        address = named or (own.address if own else "")
        rounds = [(batches("", numbers, 20), batches(address, numbers, 20)) for _ in range(_BATCHES // 20)]
    for name, index in (("processor", 0), ("in all", 1)):
        off, on = ([ms for turn in rounds for ms in turn[side][index]] for side in (0, 1))
        print(
            f"a batch of 10, {name}: {statistics.median(off):.2f} ms off, {statistics.median(on):.2f} ms on"
        )
    with socket.create_server(("127.0.0.1", 0)) as silent:
        _, wall = batches(f"http://127.0.0.1:{silent.getsockname()[1]}", numbers, 50, 0)
    print(
        f"a collector that never answers, 50 batches: the longest {max(wall):.0f} ms, {sum(wall):.0f} ms in all"
    )
    for name, endpoint in (("off", ""), ("on", "https://collector.example")):
        milliseconds, modules = cold(endpoint)
        print(f"cold start, {name}: {milliseconds:.0f} ms of the processor, {modules} modules")


if __name__ == "__main__":
    main()

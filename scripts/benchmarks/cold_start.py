"""The cost of a cold start before the first event, next to an empty handler with boto3 and powertools.

Ours imports from its layer, whose botocore is smaller. The empty handler has the whole boto3, as Lambda provides it.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

from scripts import build_layer
from scripts.benchmarks.executor_stub import ENVIRONMENT
from scripts.measure.result import Goal, Result, Table
from scripts.measure.rounds import ratio, take_turns

ROOT = Path(__file__).resolve().parents[2]
# Import the handler, and build its clients and other parts.
_EMPTY = "empty handler: boto3, powertools"
_CANDIDATES = {
    _EMPTY: (
        "import boto3; from aws_lambda_powertools import Logger, Metrics",
        "boto3.client('dynamodb'); boto3.client('sqs'); Logger(service='s'); Metrics(namespace='n', service='s')",
    ),
    "scheduler": ("from scheduler import handler", "handler.scheduler()"),
    "executor": ("from executor import handler", "handler._executor()"),
    "api": ("from minute8.api import handler", "handler.handle"),
}
_LISTED = ("boto3", "botocore", "pydantic", "aws_lambda_powertools", "croniter", "asyncio", "icalendar")
_ROUNDS = 7


def run(scale: float) -> Result:
    """Measure in fresh interpreters, one for each import."""
    rounds_wanted = max(1, round(_ROUNDS * min(scale, 1)))
    imports = take_turns({name: partial(_cpu_s, name, "") for name in _CANDIDATES}, rounds_wanted)
    ready = take_turns(
        {name: partial(_cpu_s, name, work) for name, (_, work) in _CANDIDATES.items()}, rounds_wanted
    )
    rows = []
    figures: dict[str, dict[str, Any]] = {}
    for name in _CANDIDATES:
        figures[name] = {
            "import_ms": statistics.median(imports[name]) * 1000,
            "ready_ms": statistics.median(ready[name]) * 1000,
            "ready_ratio": ratio(ready[name], ready[_EMPTY]),
            "modules": _modules(name),
        }
        measured = figures[name]
        listed = ", ".join(module for module in _LISTED if module in measured["modules"])
        milliseconds = [f"{measured['import_ms']:.0f}", f"{measured['ready_ms']:.0f}"]
        rows.append(
            [name, *milliseconds, f"{measured['ready_ratio']:.2f}", str(len(measured["modules"])), listed]
        )
    for measured in figures.values():
        measured["modules"] = len(measured["modules"])
    head = [
        "function",
        "import, CPU ms",
        "import and clients, CPU ms",
        "÷ empty handler",
        "modules",
        "of the large ones",
    ]
    slowest = max(figures[name]["ready_ratio"] for name in ("scheduler", "executor"))
    return Result(
        "cold_start",
        scale,
        tables=[Table("Before the first event", head, rows)],
        goals=[
            Goal(
                "cold start: scheduler and executor / an empty handler with boto3 and powertools",
                1,
                slowest,
                False,
            )
        ],
        figures=figures,
    )


def _cpu_s(name: str, work: str) -> float:
    """Processor seconds of a fresh interpreter for it, without the interpreter's own start."""
    statements = f"{_CANDIDATES[name][0]}; {work or None}"
    return float(
        _fresh(
            name,
            f"import time; began = time.process_time(); {statements}; print(time.process_time() - began)",
        )
    )


def _modules(name: str) -> list[str]:
    measured = _fresh(
        name,
        f"import sys; before = set(sys.modules); {_CANDIDATES[name][0]}; print(*(set(sys.modules) - before))",
    )
    return measured.split()


def _fresh(name: str, statements: str) -> str:
    layer, _ = build_layer.build("local", "layer")
    environment = {
        **{name: os.environ[name] for name in ("PATH", "HOME", "VIRTUAL_ENV") if name in os.environ},
        **ENVIRONMENT,
        "AWS_DEFAULT_REGION": "us-east-1",
        "POWERTOOLS_METRICS_DISABLED": "true",
        **({} if name == _EMPTY else {"PYTHONPATH": str(layer / "python")}),
    }
    command = [sys.executable, "-c", statements]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()

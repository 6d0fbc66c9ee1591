"""The API over HTTP, next to a bare handler behind the same gateway; and the processor time of both."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from functools import partial

from benchmarks.api_stage import LISTED, Served, definition, served
from benchmarks.api_stub import in_process
from benchmarks.bare_api import MAKER, TENANT
from benchmarks.measure import percentile, ratio, take_turns
from benchmarks.result import Goal, Result, Table

_REQUESTS = 300
_CALLS = 100
_ROUNDS = 9
_NOTHING = "a bare handler that answers at once"
# The request to the API, and the one to the bare handler.
_PAIRS = {
    "get a job": "bare get: one GetItem",
    f"list {LISTED} jobs": "bare list: one Query",
    "create a job": "bare create: one PutItem",
}


def run(scale: float) -> Result:
    """Measure, with 300 requests of each kind over HTTP at scale 1."""
    requests = max(3, int(_REQUESTS * scale))
    with served() as both:
        asked = _asked(both)
        take_turns(asked, 3)  # cold starts are another benchmark's
        took_s = take_turns(asked, requests)
    with in_process(max(2, int(_CALLS * min(scale, 1)))) as calls:
        take_turns(calls, 1)
        cpu_s = take_turns(calls, max(2, round(_ROUNDS * min(scale, 1))))
    beyond_ms = {ours: _beyond_s(took_s[ours], took_s[bare]) * 1000 for ours, bare in _PAIRS.items()}
    in_cpu = {ours: ratio(cpu_s[ours], cpu_s[bare]) for ours, bare in _PAIRS.items()}
    get = next(iter(_PAIRS))
    return Result(
        "api_latency",
        scale,
        tables=[
            Table(
                f"Over HTTP on the embedded AWS, one after another, {requests} of each, ms",
                ["request", "p50", "p99", "more than the bare one"],
                [_row(name, took_s[name], beyond_ms.get(name)) for name in took_s],
            ),
            Table(
                "In one process, without AWS and network, processor time",
                ["request", "CPU ms", "÷ the bare one"],
                [
                    [name, f"{statistics.median(cpu_s[name]) * 1000:.2f}", _told(in_cpu.get(name))]
                    for name in cpu_s
                ],
            ),
        ],
        goals=[
            Goal("API: get a job over HTTP, ms more than a bare handler", 5, beyond_ms[get], at_least=False),
            Goal("API: get a job, processor time / a bare handler's", 2, in_cpu[get], at_least=False),
        ],
        figures={
            "beyond_ms": beyond_ms,
            "cpu": in_cpu,
            "p50_ms": {name: statistics.median(values) * 1000 for name, values in took_s.items()},
            "p99_ms": {name: percentile(values, 0.99) * 1000 for name, values in took_s.items()},
        },
    )


def _asked(both: Served) -> Mapping[str, Callable[[], float]]:
    read, made = partial(both.took_s, TENANT, "GET"), partial(both.took_s, MAKER)
    job = definition(both.target)
    return {
        _NOTHING: partial(read, "/bare/nothing"),
        "get a job": partial(read, "/v1/jobs/listed-00"),
        "bare get: one GetItem": partial(read, "/bare/get/listed-00"),
        f"list {LISTED} jobs": partial(read, "/v1/jobs"),
        "bare list: one Query": partial(read, "/bare/list"),
        "create a job": partial(made, "PUT", "/v1/jobs/made-{n}", job),
        "bare create: one PutItem": partial(made, "POST", "/bare/create/made-{n}", job),
    }


def _beyond_s(ours: list[float], bare: list[float]) -> float:
    """The median of the rounds' own differences."""
    return statistics.median(a - b for a, b in zip(ours, bare, strict=True))


def _row(name: str, took_s: list[float], beyond_ms: float | None) -> list[str]:
    p50, p99 = statistics.median(took_s), percentile(took_s, 0.99)
    more = "" if beyond_ms is None else f"{beyond_ms:.1f}"
    return [name, f"{p50 * 1000:.1f}", f"{p99 * 1000:.1f}", more]


def _told(over: float | None) -> str:
    return "" if over is None else f"{over:.2f}"

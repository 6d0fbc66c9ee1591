"""Crowded seconds that a tick plans, so that they travel in packs after wakes; and the batches that executed them.

What is registered inside a planned window travels in single messages. So the bursts are registered first of all, before
the first tick of the stage, or for a later window if there was one already.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from common import telemetry
from common.planning.execution import Execution
from common.planning.packs import WAKE_S
from common.timing.instants import DAY_S, rfc3339
from common.timing.windows import planning_end
from scripts.demo.stage import Stage
from scripts.measure import engine as loads
from scripts.measure.engine import Engine

WOKEN_BEFORE_S: Final = WAKE_S + 5
# How many jobs tell how long registering takes here, and how much longer it may take later. A tick takes seconds.
_PACE_JOBS, _SLOWER, _TICK_S = 40, 2, 20
# So few do not wait for the end of the first window: a quick verification.
_QUICK: Final = 100
# A burst is over before the next one: the longest that it is given, and for each execution.
_APART_S, _APART_EACH_S = 15, 0.01
# A tick is sure to plan so far ahead.
_PLANNED_S: Final = 300
HEAD: Final = ("batches", "executions a batch", "environments", "invocations without one", "cold")


@dataclass(frozen=True, slots=True)
class Burst:
    """Executions at one second."""

    count: int
    invocation: str
    at: int
    executions: Sequence[Execution]


@dataclass(frozen=True, slots=True)
class Batches:
    """What the executor's log says. `without`, `cold`: None where Lambda does not report its invocations."""

    batches: int
    executions: int
    environments: int
    without: int | None
    cold: int | None


def plan(engine: Engine, crowds: Sequence[tuple[int, str]]) -> list[Burst]:
    """Register (count, invocation) executions, each crowd at a second of its own, and let one tick plan them.

    The rule does not tick meanwhile. Raises ValueError if a tick cannot plan them all at once.
    """
    total = sum(count for count, _ in crowds)
    spans = [int(max(_APART_S, count * _APART_EACH_S)) for count, _ in crowds]
    if sum(spans) > _PLANNED_S - WOKEN_BEFORE_S - _TICK_S:
        raise ValueError(f"bursts of {total} executions are more than one tick plans: give fewer")
    events, rule = engine.stage.client("events"), f"{engine.stage.name}-tick"
    planned = []
    events.disable_rule(Name=rule)
    try:
        had_progress = engine.stage.progress() is not None
        first = int(time.time() + total * _pace_s(engine) * _SLOWER + _TICK_S)
        # The jobs that tell the pace have made one. What is due before it travels in single messages.
        if (progress := engine.stage.progress()) and (had_progress or total > _QUICK):
            first = max(first, progress.planned_until)
        for number, (count, invocation) in enumerate(crowds):
            at = first + sum(spans[:number])
            target = engine.target | {"invocation": invocation}
            name = f"burst-{count}-{invocation.lower()}"
            planned.append(
                Burst(count, invocation, at, loads.register(engine, name, [at] * count, target=target))
            )
        while planning_end(time.time()) <= planned[-1].at:
            time.sleep(1)
        engine.stage.tick()
    finally:
        events.enable_rule(Name=rule)
    return planned


def _pace_s(engine: Engine) -> float:
    """How long registering one of many jobs takes: the account may be far away, and this machine slow."""
    tomorrow, began = int(time.time()) + DAY_S, time.monotonic()
    loads.register(engine, "pace", [tomorrow] * _PACE_JOBS)
    return (time.monotonic() - began) / _PACE_JOBS


def not_planned(stage: Stage, planned: Sequence[Burst]) -> list[str]:
    """Which of them the tick came too late for, or did not reach."""
    progress, now = stage.progress(), time.time()
    until = progress.planned_until if progress else 0
    return [
        f"the second {rfc3339(burst.at)} was not planned: it is {rfc3339(int(now))}, planned until {rfc3339(until)}"
        for burst in planned
        if burst.at >= until or burst.at - WAKE_S < now
    ]


def batches(log: Iterable[Mapping[str, Any]]) -> Batches:
    """What the executor's log events say: a line of metrics for each batch, and Lambda's own of each invocation."""
    executed, reports, cold, streams = [], 0, 0, set()
    for event in log:
        line = _parsed(str(event["message"]))
        if line.get("type") == "platform.report":
            reports += 1
            cold += "initDurationMs" in line.get("record", {}).get("metrics", {})
        if late := line.get(telemetry.LATENESS_S):
            executed.append(len(late) if isinstance(late, list) else 1)
            streams.add(event["logStreamName"])
    is_reported = reports > 0
    return Batches(
        len(executed),
        sum(executed),
        len(streams),
        reports - len(executed) if is_reported else None,
        cold if is_reported else None,
    )


def cells(counted: Batches) -> list[str]:
    """Of a row under HEAD."""
    size = counted.executions / counted.batches if counted.batches else 0
    optional = ["" if count is None else f"{count:,}" for count in (counted.without, counted.cold)]
    return [f"{counted.batches:,}", f"{size:.1f}", f"{counted.environments:,}", *optional]


def _parsed(message: str) -> dict[str, Any]:
    """A line of the log as JSON; nothing for another line."""
    try:
        line = json.loads(message)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}

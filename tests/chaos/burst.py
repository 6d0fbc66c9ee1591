"""Kill all executors in the middle of a burst, and count what is called twice.

    python -m tests.chaos.burst --rounds 4 --invocation Event

Each round is a burst of executions at one second, in packs. Nothing is killed in the first one: it shows how long a
burst takes. In each other one, every executor is killed when a random share of the burst has its records.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from common.planning.execution import Execution
from common.timing.instants import rfc3339
from scripts.demo.stage import Stage
from scripts.demo.witness import Call, calls_in, expected
from scripts.demo.workload import Registration
from scripts.embedded import Embedded, deploy, kill, start
from tests.chaos.victims import workers

_TENANTS = 20
_APART_S = 120
# A message that nobody hides comes again after 1.2 × 60 s.
_PARAMETERS = {"executorTimeoutS": "60", "maxReceiveCount": "20", "maximumConcurrency": "5"}


@dataclass(frozen=True)
class Round:
    """What a kill at `killed_at` did: calls by execution."""

    due_at: int
    killed_at: float
    killed: int
    executions: int
    calls: dict[str, list[float]]

    @property
    def before(self) -> int:
        """The executions that were called before the kill."""
        return sum(min(times) < self.killed_at for times in self.calls.values())

    @property
    def twice(self) -> int:
        return sum(len(times) > 1 for times in self.calls.values())

    @property
    def last_after_s(self) -> float:
        return max(max(times) for times in self.calls.values()) - self.killed_at

    def words(self) -> str:
        """One line of figures."""
        missing = self.executions - len(self.calls)
        return (
            f"killed {self.killed} executors {self.killed_at - self.due_at:.2f} s after the second: "
            f"{self.before} called before, {self.twice} called twice, {missing} missing, "
            f"the last call {self.last_after_s:.1f} s after the kill"
        )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.burst", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="executions of a burst")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--invocation", default="Event", choices=["Event", "RequestResponse"])
    parser.add_argument("--strict", action="store_true", help="with the strict layer and TLS")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="minute8-burst-") as directory:
        state_dir = Path(directory)
        embedded = start(state_dir, 0, auth=True, tied=True, strict=options.strict, tls=options.strict)
        os.environ.update(embedded.env())
        try:
            embedded = deploy(embedded, stage="test", params=_PARAMETERS)
            return play(embedded, options)
        finally:
            kill(state_dir)


def play(embedded: Embedded, options: argparse.Namespace) -> int:
    """All rounds; 1 if an execution was not called."""
    stage, rng = Stage(embedded.env(), "test"), random.Random(options.seed)
    bursts = register(stage, options)
    stage.tick()
    missing = 0
    for number, (due_at, executions) in enumerate(bursts):
        if number == 0:
            time.sleep(max(0.0, due_at - time.time() + _APART_S / 2))
            times = sorted(call.at - due_at for call in calls_of(stage, due_at, executions))
            words = f"half after {times[len(times) // 2]:.2f} s, all after {times[-1]:.2f} s"
            print(f"load {os.getloadavg()[0]:.1f}; without a kill: {words}", flush=True)
            continue
        result = one_round(embedded, stage, due_at, executions, rng.uniform(0.3, 0.7))
        missing += result.executions - len(result.calls)
        print(f"load {os.getloadavg()[0]:.1f}; {result.words()}", flush=True)
    return 1 if missing else 0


def register(stage: Stage, options: argparse.Namespace) -> list[tuple[int, list[Execution]]]:
    """The one-off jobs of all bursts, before the first tick: it packs them."""
    arn = stage.deploy_target()
    stage.allow([f"tenant-{number}" for number in range(_TENANTS)], arn)
    target = {"kind": "lambda", "arn": arn, "invocation": options.invocation}
    first_at = int(time.time()) + 60 + options.count * options.rounds // 6
    bursts = []
    for number in range(options.rounds):
        due_at = first_at + number * _APART_S
        jobs = stage.register(
            [
                Registration(
                    f"tenant-{nth % _TENANTS}",
                    f"burst-{number}-{nth}",
                    {"schedule": {"at": rfc3339(due_at)}, "target": target, "timeout_s": 10},
                )
                for nth in range(options.count)
            ]
        )
        bursts.append((due_at, [execution for job in jobs for execution in expected(job, 0, due_at + 1)]))
    assert time.time() < first_at - 5, "the registrations took too long"
    return bursts


def one_round(
    embedded: Embedded,
    stage: Stage,
    due_at: int,
    executions: Sequence[Execution],
    share: float,
) -> Round:
    time.sleep(max(0.0, due_at - time.time()))
    while len(stage.runs(executions)) < share * len(executions):
        time.sleep(0.05)
    executors = [pid for pid, name in workers(embedded).items() if name.endswith("-executor")]
    killed_at = time.time()
    for pid in executors:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    time.sleep(max(0.0, due_at + _APART_S - 15 - time.time()))
    calls: dict[str, list[float]] = {}
    for call in calls_of(stage, due_at, executions):
        calls.setdefault(call.execution_id, []).append(call.at)
    return Round(due_at, killed_at, len(executors), len(executions), calls)


def calls_of(stage: Stage, since: float, executions: Sequence[Execution]) -> list[Call]:
    ids = {execution.execution_id for execution in executions}
    return [call for call in calls_in(stage.target_log(since)) if call.execution_id in ids]


if __name__ == "__main__":
    sys.exit(main())

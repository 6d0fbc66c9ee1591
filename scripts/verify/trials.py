"""What a verification tries on a deployed stage. Each trial returns its table, its figures and what went wrong."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Final

from common.clock import SystemClock
from common.planning.execution import Execution
from common.platform.findings import Level
from common.platform.tenants import Tenants
from common.runs.states import SUCCEEDED
from common.storage.table import Table as DynamoTable
from common.timing.instants import rfc3339
from minute8.cli.doctor.deployment import connect
from minute8.cli.doctor.examine import examine
from minute8.client import Client
from scripts import versions
from scripts.demo.show import Show
from scripts.demo.view import PlainView
from scripts.demo.witness import ENDED, Call, calls_in, problems
from scripts.demo.workload import LIVELY_TENANT, Registration, lively_jobs, real_workload
from scripts.measure import engine as loads
from scripts.measure.engine import Engine
from scripts.verify import bursts
from scripts.verify.bursts import Burst
from scripts.verify.results import TrialResult, allowed, lateness, row

INVOCATIONS: Final = ("Event", "RequestResponse")
_TENANT: Final = "tenant-0"
# The killed executor: its time limit, and how long its target works.
_LIMIT_S, _WORKS_S, _TIMEOUT_S = 3, 5, 6
_HOUR_S: Final = 3600
# An update goes on for this much less than its load.
_MARGIN_S: Final = 20


@dataclass(frozen=True, slots=True)
class Size:
    """How much a verification does. `patience_s`: how long it waits for runs after the last was due.

    It outlasts the longest wait of a message that met a refused request, 15 minutes: what comes later is lost.
    """

    workload_s: int = 90
    workload_jobs: int = 688
    alone: int = 5
    bursts: tuple[int, ...] = (40, 500, 5_000)
    delayed: int = 200
    backfill: int = 168
    updated_jobs: int = 10
    frozen_s: int = 360
    patience_s: int = 960


SMALL: Final = Size(
    workload_s=10,
    workload_jobs=10,
    alone=2,
    bursts=(20,),
    delayed=10,
    backfill=40,
    updated_jobs=1,
    frozen_s=5,
    patience_s=60,
)


@dataclass(frozen=True, slots=True)
class Deployed:
    """The deployment that is tried; `again` deploys it with these parameters besides. It took `took_s`."""

    api_url: str
    took_s: float
    again: Callable[[Mapping[str, str]], object]


class Trials:
    """All trials on one stage, in order."""

    def __init__(self, engine: Engine, deployed: Deployed, size: Size) -> None:
        self._engine, self._deployed, self._size = engine, deployed, size
        self._stage = engine.stage

    def all(self) -> list[tuple[str, Callable[[], TrialResult]]]:
        """The trials by name. The first tick is that of the bursts. The killed executor's message comes back after
        half a minute, so that trial has two parts."""
        crowds = [(count, invocation) for count in self._size.bursts for invocation in INVOCATIONS]
        planned: list[Burst] = []

        def plan() -> TrialResult:
            planned.extend(bursts.plan(self._engine, crowds))
            return TrialResult("Planning", problems=bursts.not_planned(self._stage, planned))

        return [
            ("a tick plans the bursts", plan),
            *(
                (
                    f"{count} at one second, {invocation}",
                    partial(self._burst, planned, number),
                )
                for number, (count, invocation) in enumerate(crowds)
            ),
            ("doctor", self.doctor),
            ("an executor is killed", self.kill),
            ("a lone execution", self.alone),
            ("the demo's workload", self.workload),
            ("a registration in a planned window", self.planned_window),
            ("SQS's own delay", self.delays),
            ("a backfill", self.backfill),
            ("its run is taken over", self.taken_over),
            ("an update under load", self.update),
            ("a call after a freeze", self.frozen),
        ]

    def doctor(self) -> TrialResult:
        """`minute8 doctor`, after the first tick."""
        findings = examine(
            connect(self._stage.name.removeprefix("minute8-"), SystemClock(), self._deployed.api_url), 60
        )
        counts = Counter(str(finding.level) for finding in findings)
        rows = [
            [str(finding.level), finding.check, finding.message]
            for finding in findings
            if finding.level != Level.OK
        ]
        return TrialResult(
            "Doctor",
            ["", "check", "found"],
            rows or [["ok", "all", ""]],
            dict(counts),
            [
                f"doctor: {finding.check}: {finding.message}"
                for finding in findings
                # The bursts make alarms ring.
                if finding.level == Level.FAILED and finding.check != "alarms"
            ],
        )

    def workload(self) -> TrialResult:
        """The demo's jobs, and its judge: schedules, runs and the target's own log compared."""
        arn = self._engine.target["arn"]
        real = list(real_workload(arn))[: self._size.workload_jobs]
        self._stage.allow({LIVELY_TENANT, *(registration.tenant for registration in real)}, arn)
        jobs = self._stage.register(real)
        since = time.time()
        jobs += self._stage.register(lively_jobs(arn, since))
        show = Show(self._stage, jobs, PlainView(), since)
        show.watch(self._size.workload_s)
        show.settle()
        show.forget_later_runs()
        for job in jobs:
            self._stage.store.delete(job.tenant, job.job_id)
        called = {name for name, run in show.runs.items() if run["status"] != "skipped"}
        calls = self._calls(since, called)
        late = [
            calls[execution.execution_id] - execution.due_at
            for execution in show.due()
            if execution.execution_id in calls
        ]
        kept = _without_allowed(calls_in(self._stage.target_log(since)), show.runs)
        wrong = problems(show.due(), show.runs, kept)
        return lateness("The demo's workload", f"{len(jobs)} jobs, {self._size.workload_s} s", late, wrong)

    def alone(self) -> TrialResult:
        """One execution, and then nothing for three seconds. The first finds no warm environment."""
        first = int(time.time()) + 5
        times = [first + 4 * number for number in range(self._size.alone)]
        late, wrong = self._measure(loads.register(self._engine, "alone", times), first - 5, len(times))
        result = lateness("A lone execution", "the first, cold", late[:1], wrong)
        result.rows += [row("the others, warm", late[1:])]
        return result

    def planned_window(self) -> TrialResult:
        """A job whose time lies in a window that a tick has planned already."""
        since = time.time()
        at = int(since) + 6
        progress = self._stage.progress()
        wrong = (
            []
            if progress and progress.planned_until > at
            else [f"the window of {rfc3339(at)} is not planned"]
        )
        late, more = self._measure(loads.register(self._engine, "planned", [at]), since, 1)
        return lateness("Registered in a planned window", "one execution", late, wrong + more)

    def _burst(self, planned: Sequence[Burst], number: int) -> TrialResult:
        """A crowded second that the tick has planned: in packs, after wakes."""
        if not planned:
            return TrialResult("Bursts", problems=["no tick has planned it"])
        burst = planned[number]
        since = burst.at - bursts.WOKEN_BEFORE_S
        late, wrong = self._measure(burst.executions, since, burst.count)
        load = f"{burst.count:,} at one second, {burst.invocation}"
        result = lateness("Bursts", load, late, wrong)
        batches = bursts.batches(self._engine.executor_log(since))
        result.head = [*result.head, *bursts.HEAD]
        result.rows = [[*result.rows[0], *bursts.cells(batches)]]
        result.figures[f"{load}: batches"] = asdict(batches)
        return result

    def update(self) -> TrialResult:
        """The stage is deployed again, with another configuration, while jobs run each second."""
        first, load_s = int(time.time()) + 10, _MARGIN_S + int(2 * self._deployed.took_s)
        count = self._size.updated_jobs
        executions = loads.every_second(self._engine, first, load_s, "updated", count)
        time.sleep(max(0.0, first + 5 - time.time()))
        began = time.time()
        self._deployed.again({"logLevel": "WARNING"})
        took_s = time.time() - began
        late, wrong = self._measure(executions, first - 5, len(executions))
        return lateness("An update under load", f"{count} a second, updated in {took_s:.0f} s", late, wrong)

    def frozen(self) -> TrialResult:
        """One execution of one attempt, after nothing for minutes: a frozen environment, connections that are gone."""
        time.sleep(self._size.frozen_s)
        at = int(time.time()) + 5
        executions = loads.register(
            self._engine,
            "frozen",
            [at],
            retry={"max_attempts": 1},
            target=self._engine.target | {"invocation": "RequestResponse"},
        )
        late, wrong = self._measure(executions, at - 5, 1)
        return lateness("After a freeze", f"nothing for {self._size.frozen_s} s", late, wrong)

    def delays(self) -> TrialResult:
        """A queue and a function alone: how late SQS and Lambda deliver a delayed message, without Minute8."""
        since, count = time.time(), self._size.delayed
        self._engine.send_bare([int(since) + 3 + number % 5 for number in range(count)])
        give_up_at = time.time() + self._size.patience_s
        while len(late := self._engine.bare_lateness(since)) < count and time.time() < give_up_at:
            time.sleep(1)
        wrong = [] if len(late) >= count else [f"{count - len(late)} delayed messages did not come"]
        return lateness("SQS's own delay", "queue and function alone", late, wrong)

    def backfill(self) -> TrialResult:
        """The last hours of an hourly job, two at a time: a chain that Lambda's recursion rule would end."""
        since, hours = time.time(), self._size.backfill
        definition = {"schedule": {"cron": "0 * * * *"}, "target": self._engine.target}
        self._stage.register([Registration(_TENANT, "hourly", definition)])
        end = int(since) // _HOUR_S * _HOUR_S
        request = {"start_at": rfc3339(end - hours * _HOUR_S), "end_at": rfc3339(end), "concurrency": 2}
        tenants = Tenants(DynamoTable(self._stage.client("dynamodb"), f"{self._stage.name}-tenants"))
        key = tenants.api_keys.create_key(_TENANT, "write", SystemClock().now())[0]
        with Client(self._deployed.api_url, key) as client:
            started = client.start_backfill("hourly", request)
            calls = self._until_called(since, lambda name: started["backfill_id"] in name, hours)
        took_s = max(calls.values(), default=since) - since
        wrong = (
            [] if len(calls) == started["total"] == hours else [f"{len(calls)} of {hours} runs were called"]
        )
        rows = [[f"{len(calls)}", f"{took_s:.1f}"]]
        return TrialResult(
            "A backfill", ["runs", "took, s"], rows, {"runs": len(calls), "took_s": took_s}, wrong
        )

    def kill(self) -> TrialResult:
        """End an executor in the middle of a call, by a time limit below the call's duration."""
        since = time.time()
        executor = f"{self._stage.name}-executor"
        with versions.changed(self._stage.client("lambda"), executor, Timeout=_LIMIT_S):
            self._killed = loads.register(
                self._engine,
                "killed",
                [int(time.time()) + 10],
                payload={"duration_s": _WORKS_S},
                timeout_s=_TIMEOUT_S,
                target=self._engine.target | {"invocation": "RequestResponse"},
            )
            (execution,) = self._killed
            self._first_call = self._calls(since, {execution.execution_id}).get(execution.execution_id)
            time.sleep(_LIMIT_S + 1)
        wrong = [] if self._first_call else ["its target was not called"]
        return TrialResult("An executor is killed", problems=wrong)

    def taken_over(self) -> TrialResult:
        """The run of the killed executor succeeds, at its first attempt, by another one."""
        (execution,) = self._killed
        give_up_at = time.time() + self._size.patience_s
        while (run := self._stage.runs([execution]).get(execution.execution_id, {})).get(
            "status"
        ) != SUCCEEDED:
            if time.time() > give_up_at:
                break
            time.sleep(1)
        since = self._first_call or execution.due_at
        calls = [
            call
            for call in calls_in(self._stage.target_log(since - 60))
            if call.execution_id == execution.execution_id
        ]
        again_s = max((call.at for call in calls), default=since) - since
        is_well = (run.get("status"), run.get("attempt"), len(calls)) == (SUCCEEDED, 1, 2)
        wrong = (
            []
            if is_well
            else [f"it is {run.get('status')} at attempt {run.get('attempt')}, called {len(calls)} times"]
        )
        return TrialResult(
            "A killed executor's run",
            ["called again after, s"],
            [[f"{again_s:.1f}"]],
            {"again_s": again_s},
            wrong,
        )

    def _measure(
        self, executions: Sequence[Execution], since: float, count: int
    ) -> tuple[list[float], list[str]]:
        """How late the target was called, by its own clock, in the executions' order; and the judge's findings.

        Waits for the last second first: a burst may be in a window minutes away, and a load goes on for that long.
        """
        time.sleep(max(0.0, max((execution.due_at for execution in executions), default=0) - time.time()))
        calls = self._calls(since, {execution.execution_id for execution in executions})
        give_up_at = time.time() + self._size.patience_s
        while True:
            runs = self._stage.runs(executions)
            is_settled = len(runs) == len(executions) and all(run["status"] in ENDED for run in runs.values())
            if is_settled or time.time() > give_up_at:
                break
            time.sleep(1)
        execution_ids = {execution.execution_id for execution in executions}
        seen = [
            call for call in calls_in(self._stage.target_log(since)) if call.execution_id in execution_ids
        ]
        wrong = problems(executions, runs, _without_allowed(seen, runs))
        if len(executions) < count:
            wrong.append(f"{count - len(executions)} jobs were registered after they were due")
        late = [
            calls[execution.execution_id] - execution.due_at
            for execution in executions
            if execution.execution_id in calls
        ]
        return late, wrong

    def _calls(self, since: float, execution_ids: Iterable[str]) -> dict[str, float]:
        names = set(execution_ids)
        return self._until_called(since, names.__contains__, len(names))

    def _until_called(self, since: float, is_ours: Callable[[str], bool], count: int) -> dict[str, float]:
        """When the target says that it was called first, by execution, as soon as there are so many."""
        give_up_at = time.time() + self._size.patience_s
        while True:
            first: dict[str, float] = {}
            for call in calls_in(self._stage.target_log(since)):
                if is_ours(call.execution_id):
                    first[call.execution_id] = min(call.at, first.get(call.execution_id, call.at))
            if len(first) >= count or time.time() > give_up_at:
                return first
            time.sleep(1 if count < 1_000 else 5)


def _without_allowed(seen: Sequence[Call], runs: Mapping[str, Mapping[str, Any]]) -> list[Call]:
    """The calls that the judge counts; says how many more the guarantees allow."""
    kept = allowed(seen, runs)
    if len(kept) < len(seen):
        print(f"{len(seen) - len(kept)} calls were made again, as docs/guarantees.md allows", flush=True)
    return kept

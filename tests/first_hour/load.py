"""The load under which the first hour upgrades and removes its stage: executors that wait for calls, and events."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from common.planning.execution import Execution
from common.runs.states import DISPATCHED, ENDED, SUCCEEDED
from common.timing.instants import rfc3339
from scripts.demo.stage import Stage
from scripts.demo.witness import expected
from scripts.demo.workload import Registration

_EVERY_S: Final = 5
# Awaited calls, each almost until the next; and events. Lambda begins with five batches: if awaited calls had them all,
# events would be 4 s late, and the doctor would rightly say that alarms are on.
_AWAITED, _WORKS_S, _EVENTS = 4, 4, 20
_PATIENCE_S: Final = 60
_BEGINS_AFTER_S: Final = 15


class Load:
    """Jobs of a tenant that fire each few seconds, from now on and for `seconds`."""

    def __init__(self, env: Mapping[str, str], stage: str, tenant: str, target: str, seconds: int) -> None:
        self._stage = Stage(env, stage)
        self.first = int(time.time()) + _BEGINS_AFTER_S
        self._until = self.first + seconds

        def job(name: str, invocation: str, **fields: Any) -> Registration:
            bounds = {"start_at": rfc3339(self.first), "end_at": rfc3339(self._until)}
            schedule = {"cron": f"*/{_EVERY_S} * * * * *", **bounds}
            called = {"kind": "lambda", "arn": target, "invocation": invocation}
            return Registration(
                tenant,
                f"{name}-{self.first}",
                {"schedule": schedule, "target": called, "overlap": "allow", **fields},
            )

        awaited = [
            job(f"awaited-{number}", "RequestResponse", payload={"duration_s": _WORKS_S})
            for number in range(_AWAITED)
        ]
        events = [job(f"event-{number}", "Event") for number in range(_EVENTS)]
        self._jobs = self._stage.register([*awaited, *events])

    def judge(self) -> list[str]:
        """What went wrong with the executions so far: each has run, at its first attempt."""
        until = min(self._until, int(time.time()))
        executions = [execution for job in self._jobs for execution in expected(job, 0, until)]
        give_up_at = time.time() + _PATIENCE_S
        while not self._have_ended(executions) and time.time() < give_up_at:
            time.sleep(1)
        runs = self._stage.runs(executions)
        wrong = Counter(
            f"{run['status']} at attempt {run['attempt']}"
            for run in runs.values()
            if run["status"] not in (SUCCEEDED, DISPATCHED) or run["attempt"] != 1
        )
        late = sorted(float(run["started_at"]) - float(run["due_at"]) for run in runs.values())
        print(f"under load: {len(executions)} executions, the last of them {late[-1]:.1f} s late", flush=True)
        for job in self._jobs:  # a tenant may not have a second load beside them
            self._stage.store.delete(job.tenant, job.job_id)
        missing = len(executions) - len(runs)
        return [f"{count} are {state}" for state, count in wrong.items()] + (
            [f"{missing} did not run"] if missing else []
        )

    def _have_ended(self, executions: list[Execution]) -> bool:
        runs = self._stage.runs(executions)
        return len(runs) == len(executions) and all(run["status"] in ENDED for run in runs.values())

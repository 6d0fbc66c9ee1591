"""One run of the chaos test: register jobs, kill processes while they fire, then wait until all runs have ended."""

from __future__ import annotations

import math
import random
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import TypeVar

import httpx
from botocore.exceptions import BotoCoreError, ClientError

from common.jobs.job import Job
from common.planning.execution import Execution
from common.runs.states import ENDED
from scripts.demo.stage import Stage
from scripts.demo.witness import calls_in, expected
from scripts.embedded import Embedded, kill, start
from scripts.embedded.deployment import client
from tests.chaos.nightmare import Nightmare
from tests.chaos.verdict import Verdict, judge
from tests.chaos.victims import Sleepers, strike
from tests.chaos.workload import TENANTS, jobs
from tests.waiting import wait_for_snapshots

Read = TypeVar("Read")
# For the embedded AWS to answer a look after the kills.
_PATIENCE_S = 300
# Between two kills of a process, and between two power cuts.
_NEXT_KILL_S = (1.0, 6.0)
_NEXT_CUT_S = (35.0, 55.0)
# One of so many strikes stops a process for so long: past its lease, and past its message's next delivery.
_STOPS_ONE_OF, _STOPPED_S = 4, (25.0, 55.0)
_AWS = "killed: the embedded AWS itself"


class Play:
    """One embedded AWS, and the kills."""

    def __init__(self, embedded: Embedded, rng: random.Random, say: Callable[[str], None]) -> None:
        self._embedded = embedded
        self._rng = rng
        self._say = say
        self._stage = Stage(embedded.env(), "test")
        self._sqs = client(embedded, "sqs")
        self._jobs: list[Job] = []
        self._began_at = time.time()
        self._until = 0
        self.struck: Counter[str] = Counter()
        self._sleepers = Sleepers()
        self.redriven = 0

    def register(self, count: int, every_s: int) -> None:
        """Register jobs, and wait until a snapshot has them: a power cut before it would forget them."""
        target = self._stage.deploy_target()
        self._stage.allow([f"tenant-{n}" for n in range(TENANTS)], target)
        registrations = jobs(target, count, every_s, self._rng)
        self._jobs = self._stage.register(registrations)
        wait_for_snapshots(self._embedded)
        self._say(f"{len(self._jobs)} jobs, each due every {every_s} s")

    def reign(self, seconds: float) -> None:
        """Kill and stop processes for this time. Another thread calls ticks: one that is cut off takes minutes."""
        peace = Event()
        with ThreadPoolExecutor(1) as pool:
            ticks = pool.submit(self._tick_until, peace)
            try:
                self._kill_for(seconds, ticks.done)
            finally:
                peace.set()
                self._sleepers.wake(math.inf)
            ticks.result()
        self._until = int(time.time())

    def _kill_for(self, seconds: float, given_up: Callable[[], bool]) -> None:
        """Power is not cut again before a snapshot has what happened since: else nothing would get on."""
        now = time.time()
        end, next_kill, next_cut, next_word = now + seconds, now + 3, now + 20, now
        last_snapshot = None
        while (now := time.time()) < end and not given_up():
            if now >= next_cut and (snapshot := self._snapshot()) != last_snapshot:
                last_snapshot = snapshot
                self._cut_power()
                next_cut = time.time() + self._rng.uniform(*_NEXT_CUT_S)
            if now >= next_kill:
                self._strike(now)
                next_kill = now + self._rng.uniform(*_NEXT_KILL_S)
            if now >= next_word:
                self._say(f"{end - now:3.0f} s to go; struck {sum(self.struck.values())}")
                next_word = now + 15
            self._sleepers.wake(now)
            time.sleep(0.25)

    def _strike(self, now: float) -> None:
        """Kill one process, or stop it for a while."""
        stops = self._rng.randrange(_STOPS_ONE_OF) == 0
        pid, name = strike(self._embedded, self._rng, signal.SIGSTOP if stops else signal.SIGKILL)
        if pid:
            self.struck[f"{'stopped' if stops else 'killed'}: {name}"] += 1
        if pid and stops:
            self._sleepers.add(pid, now + self._rng.uniform(*_STOPPED_S))

    def _tick_until(self, peace: Event) -> None:
        while not peace.wait(0.25):
            self._tick_if_due()

    def _snapshot(self) -> Path:
        return Path(self._embedded.state_dir, "aws", "current").readlink()

    def haunt(self, seconds: float, nightmare: Nightmare) -> None:
        """Have a nightmare for this time, in which tenants look at their jobs."""
        url, key = self._embedded.api_url, self._stage.key_for_a_day("tenant-0")

        def look() -> None:
            with suppress(httpx.HTTPError):
                httpx.get(f"{url}/v1/jobs?limit=1", headers={"authorization": f"Bearer {key}"}, timeout=20)

        self._tick_if_due()
        nightmare.reign(seconds, look)
        self._until = int(time.time())

    def _cut_power(self) -> None:
        state_dir = Path(self._embedded.state_dir)
        kill(state_dir)
        strict = self._embedded.strict
        start(state_dir, self._embedded.port, auth=True, tied=True, strict=strict, tls=strict)
        self.struck[_AWS] += 1

    def _tick_if_due(self) -> None:
        """A tick during a power cut is lost. The test calls the next one sooner than ten minutes later."""
        try:
            progress = self._stage.progress()
            if progress is None or progress.planned_until < time.time() + 60:
                self._stage.tick()
        except (BotoCoreError, ClientError, RuntimeError) as error:
            self._say(f"a tick was cut off: {type(error).__name__}")

    def settle(self, faults: Sequence[tuple[float, float]] = ()) -> Verdict:
        """Wait until all due executions have ended, or for as long as one can take none has.

        Dead letters are sent again, as an operator would do. `faults`: begin and end of each fault.
        """
        due = self._due()
        self._say(f"peace; {len(due)} executions were due")
        settle_s, fewest, next_word = self._settle_s(), len(due) + 1, 0.0
        while True:
            self._tick_if_due()
            self._redrive()
            runs = self._look(lambda: self._stage.runs(due))
            unended = [e for e in due if runs.get(e.execution_id, {}).get("status") not in ENDED]
            if len(unended) < fewest:
                fewest, give_up_at = len(unended), time.time() + settle_s
            if not unended or time.time() > give_up_at:
                break
            if time.time() > next_word:
                self._say(f"{len(unended)} have not ended yet")
                next_word = time.time() + 15
            time.sleep(2)
        time.sleep(2)  # events that were handed over last
        calls = calls_in(self._look(lambda: self._stage.target_log(self._began_at)))
        return judge(due, runs, calls, self._until, faults)

    def _look(self, read: Callable[[], Read]) -> Read:
        """What `read` returns; it is repeated for five minutes while the embedded AWS is too busy to answer."""
        until = time.time() + _PATIENCE_S
        while True:
            try:
                return read()
            except BotoCoreError as error:
                if time.time() > until:
                    raise
                self._say(f"look again: {type(error).__name__}")
                time.sleep(2)

    def _settle_s(self) -> float:
        """A message that died with its executor comes again; then its run waits for a lock, and for its attempts."""
        url = self._queue_url("executions")
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])
        return int(attributes["Attributes"]["VisibilityTimeout"]) + max(map(_longest_s, self._jobs))

    def _queue_url(self, name: str) -> str:
        return str(self._sqs.get_queue_url(QueueName=f"minute8-test-{name}")["QueueUrl"])

    def _due(self) -> list[Execution]:
        return [execution for job in self._jobs for execution in expected(job, 0, self._until)]

    def _redrive(self) -> None:
        url = {name: self._queue_url(name) for name in ("executions", "executions-dead")}
        dead_letters = self._sqs.receive_message(QueueUrl=url["executions-dead"], MaxNumberOfMessages=10)
        for dead_letter in dead_letters.get("Messages", []):
            self._sqs.send_message(
                QueueUrl=url["executions"], MessageBody=dead_letter["Body"], MessageGroupId="again"
            )
            self._sqs.delete_message(
                QueueUrl=url["executions-dead"], ReceiptHandle=dead_letter["ReceiptHandle"]
            )
            self.redriven += 1


def _longest_s(job: Job) -> float:
    """How long a run of the job takes. If it is limited, each attempt waits for the work of the call before."""
    retry, work_s = job.spec.retry, job.work_s if job.spec.is_limited else job.spec.timeout_s
    return retry.max_attempts * (work_s + retry.cap_s)

"""Random jobs on an embedded AWS, their target, and the comparison with the truth."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import httpx

from common.platform.tenants import Tenants
from common.storage.table import Table
from minute8.client import Client
from scripts.embedded import Embedded
from scripts.embedded.deployment import client
from tests.oracle import truth
from tests.oracle.schedules import Schedules, text

TENANT = "oracle"
# Jobs of a key have the same limit, so that the target can count them.
LIMITS = {"one": 1, "three": 3}
_AHEAD_S = 40 * 86_400
_NEXT = 5


@dataclass
class Call:
    """One call that the target got."""

    job_id: str
    fire_at: int
    payload: Any
    at: float


class Target:
    """Answers after a moment; accepts the work of some jobs and calls back. It counts how many go of each key."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._keys = keys
        self._lock = threading.Lock()
        self._going: Counter[str] = Counter()
        self.most: Counter[str] = Counter()
        self.calls: list[Call] = []
        self.callbacks = 0

    @contextmanager
    def serving(self) -> Iterator[int]:
        """A server of this machine, on the port that is returned."""
        take = self._take

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                event = json.loads(self.rfile.read(int(self.headers["content-length"])))
                self.send_response(take(event, self.headers))
                self.end_headers()

            def log_message(self, *args: object) -> None: ...

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield server.server_port
            server.shutdown()

    def _take(self, event: Mapping[str, Any], headers: Message) -> int:
        context = event["minute8"]
        job_id = context["job_id"]
        call = Call(job_id, truth.instant_of(context["fire_at"]), event["payload"], time.time())
        with self._lock:
            key = self._keys.get(job_id, "")
            self._going[key] += 1
            self.most[key] = max(self.most[key], self._going[key])
            self.calls.append(call)
        if url := headers.get("minute8-callback-url"):
            token = headers["minute8-callback-token"]
            threading.Thread(target=self._work, args=(url, token, key), daemon=True).start()
            return 202
        time.sleep(0.2)
        self._ended(key)
        return 204

    def _work(self, url: str, token: str, key: str) -> None:
        time.sleep(1)
        _call_back(url, {"token": token, "status": "running", "percent": 50})
        time.sleep(1)
        self._ended(key)
        _call_back(url, {"token": token, "status": "succeeded", "result": "done"})
        self.callbacks += 1

    def _ended(self, key: str) -> None:
        with self._lock:
            self._going[key] -= 1


def _call_back(url: str, body: Mapping[str, Any]) -> None:
    """Again after a lost answer: the same end changes nothing."""
    for _ in range(5):
        with suppress(httpx.TransportError):
            httpx.post(url, json=body, timeout=60).raise_for_status()
            return


class Live(ExitStack):
    """The jobs, which fire until `end`; afterwards `figures` and `problems`."""

    def __init__(self, embedded: Embedded, rng: random.Random, seconds: int) -> None:
        super().__init__()
        self._embedded = embedded
        self._rng, self._seconds = rng, seconds
        self._definitions: dict[str, dict[str, Any]] = {}
        self._calendars: dict[str, list[str]] = {}
        self._active_from: dict[str, int] = {}
        self._keys: dict[str, str] = {}
        self._target = Target(self._keys)
        self.end = 0
        self.figures: Counter[str] = Counter()
        self.problems: list[str] = []

    def __enter__(self) -> Self:
        self._host = f"127.0.0.1:{self.enter_context(self._target.serving())}"
        quotas = {"jobs": 100_000, "requests_per_minute": 100_000, "executions_per_day": 10_000_000}
        tenants = Tenants(Table(client(self._embedded, "dynamodb"), "minute8-test-tenants"))
        tenants.create(TENANT, "", time.time(), {"allowed_targets": [self._host], "quotas": quotas})
        key, _ = tenants.api_keys.create_key(TENANT, "admin", time.time(), name="oracle")
        assert self._embedded.api_url
        self._client = self.enter_context(Client(self._embedded.api_url, key))
        return self

    def register(self, count: int) -> None:
        """Store calendars and jobs. Their times begin in three minutes or so: a busy machine takes its time."""
        begins = int(time.time()) // 60 * 60 + 180
        self.end = begins + self._seconds
        schedules = Schedules(self._rng, begins, self.end, gap_s=60)
        self._calendars = schedules.calendars()
        for name, dates in self._calendars.items():
            self._client.put_calendar(name, {"dates": dates})
        for number in range(count):
            self._definitions[f"job-{number:04}"] = self._definition(schedules.schedule(), f"job-{number:04}")
        for job_id, definition in self._definitions.items():
            self._client.put_job(job_id, definition, past=True)
        for job in self._client.list_jobs():
            self._active_from[job["job_id"]] = truth.instant_of(job["updated_at"]) + 1
        self.figures["jobs"] = count
        self._compare_next()

    def _definition(self, schedule: dict[str, Any], job_id: str) -> dict[str, Any]:
        definition: dict[str, Any] = {
            "schedule": schedule,
            "target": {"kind": "http", "url": f"http://{self._host}/"},
            "payload": {"place": 0, "day": "{{fire_date}}"},
            "retry": {"max_attempts": 1},
        }
        if self._rng.random() < 0.2:
            definition |= {"completion": "callback", "callback_timeout_s": 3_600}
        if self._rng.random() < 0.2:
            key = self._keys[job_id] = self._rng.choice(tuple(LIMITS))
            definition["concurrency"] = {"key": key, "limit": LIMITS[key], "max_wait_s": 3_600}
        return definition

    def _expected(self, job_id: str, until: int) -> dict[int, int]:
        schedule = self._definitions[job_id]["schedule"]
        return truth.fire_times(
            schedule, self._calendars, self._active_from[job_id], until, schedule.get("max_runs")
        )

    def _compare_next(self) -> None:
        """Those that `next` names, among what comes within 40 days: so far the calendars have dates."""
        for job_id in self._definitions:
            now = int(time.time())
            expected = [at for at in self._expected(job_id, now + _AHEAD_S) if at > now + 30][:_NEXT]
            answered = [
                at
                for each in self._client.next_fires(job_id, 50)["fires"]
                if now + 30 < (at := truth.instant_of(each["fire_at"])) < now + _AHEAD_S
            ][:_NEXT]
            self.figures["coming fire times compared"] += len(expected)
            if answered != expected:
                self._disagree("next", job_id, answered, expected)

    def compare(self) -> None:
        """All calls, runs and answers about the time that is over."""
        calls: defaultdict[str, list[Call]] = defaultdict(list)
        for call in self._target.calls:
            calls[call.job_id].append(call)
        for job_id, definition in self._definitions.items():
            expected = self._expected(job_id, self.end)
            self.figures["fire times"] += len(expected)
            self._compare_calls(job_id, definition["schedule"], expected, calls[job_id])
            runs = list(self._client.list_runs_of_job(job_id))
            self._compare_runs(job_id, expected, runs)
            self._compare_repeated(job_id, calls[job_id], runs)
            self._compare_answers(job_id, expected)
        self.figures["callbacks"] = self._target.callbacks
        for key, limit in LIMITS.items():
            self.figures[f"most that went at a time with {key}"] = self._target.most[key]
            if self._target.most[key] > limit:
                self.problems.append(f"{self._target.most[key]} runs of the key {key} went at a time")

    def _compare_calls(
        self, job_id: str, schedule: Mapping[str, Any], expected: Mapping[int, int], calls: list[Call]
    ) -> None:
        by_fire_time = {call.fire_at: call.payload for call in calls if call.fire_at < self.end}
        got = sorted(by_fire_time.items())
        right = [
            (at, {"place": place, "day": truth.local_date(schedule, place, at)})
            for at, place in expected.items()
        ]
        self.figures["calls"] += len(got)
        if got != right:
            self._disagree("calls", job_id, got, right)
        self.figures["early calls"] += sum(call.at < call.fire_at for call in calls)
        self.figures["moved, by several schedules, or counted"] += len(right) * bool(
            {"schedules", "max_runs", "on_excluded"} & schedule.keys()
        )

    def _compare_runs(self, job_id: str, expected: Mapping[int, int], runs: list[Any]) -> None:
        recorded = {truth.instant_of(run["fire_at"]): run["status"] for run in runs}
        within = {at: status for at, status in recorded.items() if at < self.end}
        self.figures["runs"] += len(within)
        if within != dict.fromkeys(expected, "succeeded"):
            self._disagree("runs", job_id, within, dict.fromkeys(expected, "succeeded"))

    def _compare_repeated(self, job_id: str, calls: list[Call], runs: list[Any]) -> None:
        """A call is repeated only after its executor died. Then its run shows it with the outcome `unknown`."""
        by_fire_time = {truth.instant_of(run["fire_at"]): run for run in runs}
        for at, count in Counter(call.fire_at for call in calls).items():
            run = by_fire_time.get(at, {"execution_id": "", "attempts": []})
            died = sum(attempt["outcome"] == "unknown" for attempt in run["attempts"])
            self.figures["calls that a dead executor had made, by their runs"] += min(count - 1, died)
            if count - 1 > died:
                called_at = [text(int(call.at)) for call in calls if call.fire_at == at]
                shown = [json.dumps(run), *self._executor_log(run["execution_id"])]
                self._disagree("repeated calls", job_id, f"at {called_at}", "\n  ".join(shown))

    def _executor_log(self, execution_id: str) -> Iterator[str]:
        """What the executors logged of an execution."""
        pages = client(self._embedded, "logs").get_paginator("filter_log_events")
        for page in pages.paginate(logGroupName="/aws/lambda/minute8-test-executor"):
            messages = (event["message"].strip() for event in page["events"])
            yield from (message for message in messages if execution_id in message)

    def _compare_answers(self, job_id: str, expected: Mapping[int, int]) -> None:
        since = self._active_from[job_id]
        pages = self._client.expected_of_job(job_id, from_at=text(since), until_at=text(self.end))
        answered = [truth.instant_of(fire["fire_at"]) for page in pages for fire in page["expected"]]
        if answered != list(expected):
            self._disagree("expected", job_id, answered, list(expected))
        for at, place in self._sample(expected.items()):
            explained = self._client.explain_job(job_id, text(at))
            self.figures["instants explained"] += 1
            several = "schedules" in self._definitions[job_id]["schedule"]
            if explained["reasons"] or (several and f"Its schedules.{place} fires" not in explained["text"]):
                self._disagree("explain", job_id, explained["text"], f"schedules.{place} fires at {text(at)}")

    def _sample(self, items: Any) -> Iterator[tuple[int, int]]:
        """Three of them at most: each is a request."""
        items = list(items)
        yield from self._rng.sample(items, min(3, len(items)))

    def _disagree(self, about: str, job_id: str, answered: object, expected: object) -> None:
        schedule = json.dumps(self._definitions[job_id]["schedule"])
        self.problems.append(f"{about} of {job_id}: {answered}\n  expected: {expected}\n  {schedule}")

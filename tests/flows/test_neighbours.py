"""No execution of a batch waits for another one's reads, writes or call, nor for its thread."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from msgspec import structs

from common import limits
from common.jobs.job import Job
from common.planning.execution import Execution
from common.planning.packs import Pack
from common.runs.outcome import Outcome
from common.storage import keys
from common.tenants.rules_cache import KnownTenants
from executor import calling, threads
from executor.batch import execute_batch
from executor.pipeline import Message
from tests.faults.stage import send_in_steps, staged
from tests.simulation.memory_dynamodb import MemoryDynamoDB
from tests.simulation.partitions import Partition, PartitionedDynamoDB
from tests.worlds import World, at, job, make_world, open_world

CLAIMS_AT_ONCE = 10
MAX_IN_A_PACK = 10

DUE = at("2026-11-21T03:15:00Z")
# Only a test that fails waits so long.
_STUCK_S: Final = 20
QUIET: Final[Mapping[str, dict[str, Any]]] = {
    "plain": {},
    "event": {"invocation": "Event"},
    "in turn": {"overlap": "skip"},
}
HOSTILE = (
    "throttled job",
    "throttled tenant",
    "throttled run",
    "throttled turn",
    "large",
    "throttled payload",
    "slow call",
    "slow event",
    "corrupt",
    "unknown kind",
    "deleted",
    "missing",
    "copy",
)


class Stage:
    """A world with hostile jobs: their throttled partitions and slow targets wait until the quiet job was called."""

    def __init__(self) -> None:
        self.throttled: set[Partition] = set()
        self.is_executing = False
        self.quiet_is_called = threading.Event()
        self.waited_in_vain: list[str] = []
        client = PartitionedDynamoDB(MemoryDynamoDB(), self)
        self.world: World = make_world(client, "2026-11-21T03:12:00Z")
        known = KnownTenants(self.world.table("tenants"))
        self.world.executor = replace(self.world.executor, tenants=known)
        self.world.target.answer = self._answer

    def begin(self) -> None:
        """Requests take no time."""

    def admits(self, partition: Partition, units: float, is_write: bool) -> bool:
        """Whether the partition is not throttled, or the quiet job was called."""
        is_free = not self.is_executing or self.quiet_is_called.is_set()
        return is_free or partition not in self.throttled

    def pause(self, nth: int) -> None:
        """Wait until the quiet job was called."""
        self._wait_for_quiet("a request")

    def _wait_for_quiet(self, waiting: str) -> None:
        if not self.quiet_is_called.wait(_STUCK_S):
            self.waited_in_vain.append(f"{waiting} in {threading.current_thread().name}")
            self.quiet_is_called.set()

    def _answer(self, event: Mapping[str, Any]) -> Outcome:
        tenant, job_id = event["minute8"]["tenant"], event["minute8"]["job_id"]
        if tenant == "quiet":
            self.quiet_is_called.set()
        elif job_id.startswith("slow"):
            self._wait_for_quiet("a call")
        return Outcome(ok=True)

    def add(self, tenant: str, hostility: str, nth: int) -> Execution:
        """Register a job, and make it hostile. Returns its execution."""
        registry, store, jobs = self.world.registry, self.world.store, self.world.table("jobs")
        job_id = f"{hostility.replace(' ', '-')}-{nth}"
        fields: dict[str, Any] = QUIET.get(hostility, {})
        if hostility == "throttled turn":
            fields = {"overlap": "skip"}
        if hostility == "large":
            fields = {"payload": [[]] * 40_000}
        if hostility == "throttled payload":
            fields = {"payload": "x" * 2_000, "invocation": "Event"}
        if hostility == "slow event":
            fields = {"invocation": "Event"}
        if hostility != "missing":
            registry.create(tenant, job_id, job(cron="0 9 * * *", **fields))
        execution = Execution(tenant, job_id, DUE, DUE, 1)
        run = keys.run(tenant, job_id, execution.run_name)
        match hostility:
            case "throttled job":
                self.throttled.add(Partition("jobs", tenant))
            case "throttled tenant":
                self.throttled.add(Partition("tenants", keys.tenant(tenant)["pk"]))
            case "throttled run":
                self.throttled.add(Partition("runs", run["pk"]))
            case "throttled turn":
                self.throttled.add(Partition("runs", keys.overlap_permit(tenant, job_id)["pk"]))
            case "throttled payload":
                self.throttled.add(Partition("jobs", keys.job_text(tenant, job_id, "")["pk"]))
            case "corrupt":
                jobs.put({**keys.job(tenant, job_id), "tenant": tenant, "job_id": job_id})
            case "unknown kind":
                item = jobs.get(keys.job(tenant, job_id))
                jobs.put({**(item or {}), "target": {"kind": "pigeon"}})
            case "deleted":
                store.delete(tenant, job_id)
            case "copy":
                self.world.runs.skip(execution, "cancelled", "", DUE)
        return execution

    def run(self, executions: list[Execution]) -> None:
        """Execute a batch of up to ten messages."""
        in_pack = -(-len(executions) // 10)
        assert in_pack <= MAX_IN_A_PACK
        bodies = [
            Pack(tuple(executions[n : n + in_pack])).encode() for n in range(0, len(executions), in_pack)
        ]
        self.world.clock.move_to(DUE - 0.5)
        self.is_executing = True
        self.world.reports, _ = execute_batch(
            self.world.executor, [Message(f"m-{n}", body) for n, body in enumerate(bodies)]
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    hostile=st.lists(st.tuples(st.sampled_from(HOSTILE), st.integers(0, 2)), min_size=1, max_size=30),
    quiet=st.sampled_from(sorted(QUIET)),
    place=st.integers(0, 30),
    later_s=st.integers(0, 1),
)
@example(hostile=[("throttled job", 0)] * 9, quiet="plain", place=9, later_s=0)
@example(hostile=[("throttled job", 0)] * 99, quiet="plain", place=99, later_s=1)
@example(hostile=[("throttled payload", 0)] * 40, quiet="event", place=0, later_s=1)
@example(hostile=[("throttled tenant", 0), ("throttled run", 1)], quiet="event", place=2, later_s=1)
@example(hostile=[("corrupt", 0), ("unknown kind", 1), ("deleted", 2)], quiet="in turn", place=0, later_s=0)
def test_a_quiet_execution_is_called_before_any_neighbour_is_through(
    monkeypatch: pytest.MonkeyPatch, hostile: list[tuple[str, int]], quiet: str, place: int, later_s: int
) -> None:
    stage = Stage()
    executions = [
        stage.add(f"hostile-{tenant}", hostility, nth) for nth, (hostility, tenant) in enumerate(hostile)
    ]
    calm = structs.replace(stage.add("quiet", quiet, 0), fire_at=DUE + later_s, due_at=DUE + later_s)
    executions.insert(min(place, len(executions)), calm)
    stage.run(executions)
    assert stage.waited_in_vain == []
    (called_at,) = {at_ for at_, context in stage.world.target.calls if context["tenant"] == "quiet"}
    assert called_at == calm.due_at
    ends = "dispatched" if quiet == "event" else "succeeded"
    assert stage.world.statuses("quiet", calm.job_id) == [ends]


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """The system starts only so many more threads of the executor's."""
    start, startable = threading.Thread.start, [0]
    lock = threading.Lock()

    def starting(thread: threading.Thread) -> None:
        with lock:
            startable[0] -= 1
            if startable[0] < 0:
                raise RuntimeError("can't start new thread")
        start(thread)

    def allow(count: int) -> None:
        startable[0] = count

    with ThreadPoolExecutor(limits.MAX_CALLS) as calls, ThreadPoolExecutor(4) as events:
        monkeypatch.setattr(threads, "call_threads", lambda: calls)
        monkeypatch.setattr(threads, "event_threads", lambda: events)
        monkeypatch.setattr(threads, "MAX_EVENT_WAIT_S", 0.02)
        monkeypatch.setattr(threads, "MAX_THREAD_WAIT_S", 0.04)
        monkeypatch.setattr(threading.Thread, "start", starting)
        yield allow


def due_together(world: World, **jobs: dict[str, Any]) -> Message:
    """Register these jobs; a message that delivers them all, at its second."""
    for job_id, fields in jobs.items():
        world.registry.create("alice", job_id, job(at="2026-11-21T03:15:00Z", **fields))
    executions = tuple(map(Execution.decode, world.sqs.bodies))
    world.sqs._waiting.clear()
    world.queue.send_packs([Pack(executions)])
    world.clock.move_to(DUE)
    message = world.sqs.receive()
    assert message
    return message


def test_no_thread_is_our_failure_and_costs_no_attempt(no_threads: Callable[[int], None]) -> None:
    with open_world() as world:
        once: dict[str, Any] = {"retry": {"max_attempts": 1}}
        message = due_together(
            world,
            call=once,
            careful=once | {"on_crash": "fail"},
            event=once | {"invocation": "Event"},
            turn=once | {"overlap": "skip"},
        )
        reports, failed = execute_batch(
            world.executor, [message], replace(world.redelivery, slow_after_s=0.01)
        )
        results = {report.execution.job_id: report.result for report in reports}
        assert results == {"call": "retrying", "careful": "retrying", "event": "retrying", "turn": "sent_on"}
        assert (failed, world.target.calls) == ([], [])
        no_threads(100)
        world.run_until("2026-11-21T04:00:00Z")
        for job_id, ends in {
            "call": "succeeded",
            "careful": "succeeded",
            "event": "dispatched",
            "turn": "succeeded",
        }.items():
            assert world.statuses("alice", job_id) == [ends], job_id
        assert len(world.target.calls) == 4
        (run,) = world.run_items("alice", "call")
        assert [attempt.get("error_type") for attempt in run["attempts"]] == ["NoThread", None]


@pytest.mark.parametrize("allowed", [0, 1, 2, 3])
@pytest.mark.parametrize("invocation", ["RequestResponse", "Event", "Event in steps"])
def test_a_batch_with_too_few_threads_ends_and_loses_nothing(
    no_threads: Callable[[int], None], invocation: str, allowed: int
) -> None:
    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.restore()
        if "steps" in invocation:
            send_in_steps(stage)
        names = [f"job-{n}" for n in range(8)]
        fields = {"invocation": invocation.split()[0], "after_completion": "delete"}
        message = due_together(world, **dict.fromkeys(names, fields))
        no_threads(allowed)
        _, failed = execute_batch(world.executor, [message], replace(world.redelivery, slow_after_s=0.01))
        no_threads(100)
        if failed:
            world.sqs.give_back(message)
        world.run_until("2026-11-21T04:00:00Z")
        ends = "succeeded" if invocation == "RequestResponse" else "dispatched"
        assert [world.statuses("alice", name) for name in names] == [[ends]] * len(names)
        assert len(world.target.calls) == len(names)


def test_a_claim_that_needs_more_requests_lets_the_first_ones_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A batch of fifteen first attempts is claimed by two requests: the second one waits until the first are called."""
    stage = Stage()
    executions = [stage.add("hostile", "plain", nth) for nth in range(CLAIMS_AT_ONCE + 4)]
    executions.append(stage.add("quiet", "plain", 0))
    insert = stage.world.dynamodb.batch_execute_statement
    requests: list[int] = []

    def inserting(_: object, Statements: list[Any]) -> Any:
        requests.append(len(Statements))
        if len(requests) == 2:
            stage._wait_for_quiet("the second request")
        return insert(Statements=Statements)

    monkeypatch.setattr(PartitionedDynamoDB, "batch_execute_statement", inserting)
    stage.run(executions)
    assert (requests, stage.waited_in_vain) == ([CLAIMS_AT_ONCE, 5], [])
    assert len(stage.world.target.calls) == len(executions)


@pytest.mark.parametrize("invocation", ["Event", "RequestResponse"])
def test_the_batchs_thread_handles_no_neighbours_bytes_and_small_ones_go_out_first(
    monkeypatch: pytest.MonkeyPatch, invocation: str
) -> None:
    """43,600 values in 128 KiB with a placeholder; as an item of its own, and in the job's item as earlier versions."""
    parsed: list[int] = []
    rendered: list[tuple[str, int]] = []
    loads, event, main = json.loads, calling.event, threading.current_thread()

    def parse(text: Any, **options: Any) -> Any:
        if threading.current_thread() is main:
            parsed.append(len(text))
        return loads(text, **options)

    def render(job: Job, payload: str, *rest: Any) -> Any:
        rendered.append((threading.current_thread().name, len(payload)))
        return event(job, payload, *rest)

    with staged("2026-11-21T03:12:00Z") as stage:
        world = stage.restore()
        hostile: list[Any] = [[]] * 43_600 + ["{{fire_time}}"]
        send_in_steps(stage)
        jobs = world.table("jobs")
        names = {f"hostile-{n}": hostile for n in range(9)} | {"quiet": {"small": "{{fire_time}}"}}
        for name, payload in names.items():
            world.registry.create(
                "alice", name, job(at="2026-11-21T03:15:00Z", payload=payload, invocation=invocation)
            )
        for name in ("hostile-0", "hostile-1"):
            item = jobs.get(keys.job("alice", name))
            jobs.put({**(item or {}), "payload": json.dumps(hostile)})
        message = due_together(world)
        monkeypatch.setattr(json, "loads", parse)
        monkeypatch.setattr(calling, "event", render)
        _, failed = execute_batch(world.executor, [message], world.redelivery)
    assert failed == []
    assert len(rendered) == len(names)
    assert max(parsed, default=0) < 1_000
    assert max((size for thread, size in rendered if thread == main.name), default=0) < 1_000
    if invocation == "Event":
        assert rendered[0] == (main.name, len('{"small":"{{fire_time}}"}'))

"""A stage that is watched: a world in simulated time whose handlers print their metrics, and the alarms over them.

Lambda's, SQS's and API Gateway's own metrics are derived by the code that derives them on the embedded AWS
(scripts/embedded/cloudwatch.py). A fault is switched on by a field of `Watched`, and off again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from math import inf
from typing import Any

from common.runs.outcome import Outcome
from executor import handler as executor
from executor.batch import execute_batch
from executor.pipeline import Message
from minute8.canary import handler as canary
from scheduler import handler as scheduler
from scheduler.tick import Scheduler
from scripts.cloudwatch.alarms import INSUFFICIENT_DATA, composite_state, state_of
from scripts.embedded.cloudwatch import Emitted
from tests.alarms import template
from tests.worlds import World

MAX_RECEIVES = 20
_QUIET = Outcome(ok=True)


@dataclass
class Watched:
    """The stage `prod`, minute by minute."""

    world: World
    ticks: bool = True
    tick_ends_in_error: bool = False
    tick_takes_s: float = 0.0
    takes_messages: bool = True
    crashes: bool = False
    throttles: bool = False
    late_by_s: float = 0.0
    # What its queue and its executors take.
    max_receives: int = MAX_RECEIVES
    takes_a_minute: float = inf
    loses: Callable[[Message], bool] = lambda _message: False
    fails: Callable[[Mapping[str, Any]], bool] = lambda _call: False
    every_minute: Callable[[Emitted], None] = lambda _emitted: None
    dead: list[dict[str, Any]] = field(default_factory=list)
    # What a damage has replaced.
    kept: dict[str, Any] = field(default_factory=dict)
    kept_scheduler: Scheduler | None = None
    states: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.emitted = Emitted(self.world.clock.now)
        self.alarms = template.alarms()
        self.states = dict.fromkeys(self.alarms, INSUFFICIENT_DATA)
        self.world.target.answer = self._called

    def run(self, minutes: int) -> None:
        """Let the stage run, evaluating the alarms at the end of each minute, as CloudWatch does."""
        for _ in range(minutes):
            self._minute()
            self._evaluate()

    def minutes_until(self, alarm: str, state: str, at_most: int = 90) -> int:
        """How many minutes pass until the alarm is in the state."""
        for minute in range(at_most + 1):
            if self.states[alarm] == state:
                return minute
            self.run(1)
        raise AssertionError(f"{alarm} is {self.states[alarm]} after {at_most} minutes")

    @property
    def ringing(self) -> set[str]:
        return {name for name, state in self.states.items() if state == "ALARM"}

    def _minute(self) -> None:
        begins = int(self.world.clock.now() // 60 * 60)
        if self.ticks and begins % 600 == 480:
            self._tick()
        end = begins + 60
        deliveries = 0
        while (due_at := self.world.sqs.next_at()) is not None and due_at + self.late_by_s < end:
            self.world.clock.move_to(max(self.world.clock.now(), due_at + self.late_by_s))
            if not self.takes_messages or deliveries >= self.takes_a_minute:
                break
            deliveries += 1
            self._deliver()
        self.world.clock.move_to(max(self.world.clock.now(), end - 1))
        self.every_minute(self.emitted)
        now = self.world.clock.now()
        waiting = [{"visible_at": at, "sent_at": at} for at, *_ in self.world.sqs._waiting]
        self.emitted.queue("minute8-prod-executions", waiting, now)
        self.emitted.queue("minute8-prod-executions-dead", self.dead, now)
        self.world.clock.move_to(max(now, end))

    def _tick(self) -> None:
        began_at, failed = self.world.clock.now(), False
        damaged = self.world.sqs.__dict__.get("send_message_batch")
        with redirect_stdout(StringIO()) as log:
            try:
                if self.tick_ends_in_error:
                    self.world.sqs.send_message_batch = _refuses  # type: ignore[method-assign, assignment]
                scheduler.handle({}, None)
            except Exception:  # noqa: BLE001  Lambda takes any for an error of the function
                failed = True
            finally:
                self.world.sqs.__dict__.pop("send_message_batch", None)
                if damaged:
                    self.world.sqs.send_message_batch = damaged  # type: ignore[method-assign]
        duration_ms = (self.world.clock.now() - began_at + self.tick_takes_s) * 1000
        self._invoked("scheduler", log.getvalue(), error=failed, duration_ms=duration_ms)

    def _deliver(self) -> None:
        message = self.world.sqs.receive()
        if message is None or self.loses(message):
            return
        if message.receives > self.max_receives:
            now = self.world.clock.now()
            self.dead.append({"visible_at": now, "sent_at": now, "body": message.body})
        elif self.throttles:
            self.emitted.add("AWS/Lambda", "Throttles", 1, FunctionName="minute8-prod-executor")
            self.world.sqs.give_back(message)
        elif self.crashes:
            self._invoked("executor", "", error=True)
            self.world.sqs.give_back(message)
        else:
            with redirect_stdout(StringIO()) as log:
                reports, failed = execute_batch(self.world.executor, [message])
                executor._log_and_count(reports, len(failed))
            self._invoked("executor", log.getvalue())
            if failed:
                self.world.sqs.give_back(message)

    def _called(self, event: Mapping[str, Any]) -> Outcome:
        """The targets: the canary is the real one."""
        if event["minute8"]["tenant"] == canary.TENANT:
            line = canary.line("prod", event["minute8"]["due_at"], self.world.clock.now())
            self._invoked("canary", line)
        return Outcome(ok=False, error_type="No", error="no") if self.fails(event["minute8"]) else _QUIET

    def _invoked(self, function: str, log: str, *, error: bool = False, duration_ms: float = 50.0) -> None:
        name = f"minute8-prod-{function}"
        self.emitted.invocation(name, log, error=error, duration_ms=duration_ms, in_flight=1)

    def _evaluate(self) -> None:
        now, metrics = self.world.clock.now(), self.emitted.metrics
        for name, alarm in self.alarms.items():
            if "AlarmRule" not in alarm:
                self.states[name] = state_of(alarm, metrics, now, self.states[name])
        full = {f"minute8-prod-{name}": state for name, state in self.states.items()}
        for name, alarm in self.alarms.items():
            if "AlarmRule" in alarm:
                self.states[name] = composite_state(alarm["AlarmRule"], full)


def _refuses(**_: object) -> object:
    raise OSError("SQS takes nothing")

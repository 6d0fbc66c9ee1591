"""The delay that one tenant's flood causes others. Simulated, as the embedded AWS has no fair queues; measured without.

A tenant with more than a tenth of the messages in flight is noisy: its messages wait while others have messages.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
"""

from __future__ import annotations

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial

from benchmarks.bare_path import engine
from benchmarks.capacity import pack_of, wakes_of, with_executor
from benchmarks.loads import lateness_of, register, warm_up
from benchmarks.measure import percentile, track
from benchmarks.model import simulate
from benchmarks.model_check import CONCURRENCY, measured_setting
from benchmarks.modelled_queue import BATCH, Message, Queue
from benchmarks.requests import _EXECUTOR_MB, PRICES
from benchmarks.result import Result, Table
from benchmarks.setting import Outcome, Setting

_FLOOD, _QUIET = 5_000, 50
_MEASURED_FLOOD = 400
_ROUNDS = 20
# AWS: "a noisy neighbor has a disproportionately large number of in-flight messages".
_NOISY_SHARE = 0.1
_NOISY = 0
# The bound on one tenant's running executions, and the delay of those above it.
_LIMITS = ((20, 1.0), (20, 10.0), (100, 1.0))


class FairQueue(Queue):
    """Messages of quiet tenants first while the noisy one has more than its share in flight."""

    def __init__(self, messages: Iterable[Message], pack: int = 1) -> None:
        super().__init__(messages, pack)
        self._quiet: deque[Message] = deque()
        self._noisy: deque[Message] = deque()
        self._noisy_in_flight = 0

    @property
    def is_empty(self) -> bool:
        return super().is_empty and not self._quiet and not self._noisy

    def can_give(self, now: float) -> bool:
        waiting = super().can_give(now) or self._quiet or self._noisy
        return bool(waiting) and self.in_flight < self._most_in_flight

    def _first(self, now: float) -> Message | None:
        while message := super()._first(now):
            (self._noisy if message.tenant == _NOISY else self._quiet).append(message)
        if not self._noisy and not self._quiet:
            return None
        first = self._whose_turn().popleft()
        self._noisy_in_flight += first.tenant == _NOISY
        return first

    def _whose_turn(self) -> deque[Message]:
        if not self._noisy or not self._quiet:
            return self._noisy or self._quiet
        if self._noisy_in_flight > _NOISY_SHARE * self.in_flight:
            return self._quiet
        return self._noisy if self._noisy[0].visible_at <= self._quiet[0].visible_at else self._quiet

    def delete(self, count: int) -> None:
        """Assumes that all of them belong to the noisy tenant, which is almost true."""
        super().delete(count)
        self._noisy_in_flight = max(0, self._noisy_in_flight - count)


def run(scale: float) -> Result:
    """One tenant has 5,000 executions in the same second as 50 tenants with one each; a smaller flood is measured."""
    flood = max(100, int(_FLOOD * scale))
    rows, figures = [], {}
    for pollers, setting in {
        "default": with_executor(Setting(), _EXECUTOR_MB),
        "20-50": with_executor(Setting(minimum_pollers=20, maximum_pollers=50), _EXECUTOR_MB),
    }.items():
        packs = replace(setting, pack=pack_of(flood), wakes=wakes_of(flood))
        ways: dict[str, tuple[int, Callable[[list[Message]], Queue], Setting]] = {
            "without the flood": (0, Queue, setting),
            "no grouping": (flood, Queue, setting),
            "no grouping, in packs": (flood, partial(Queue, pack=packs.pack), packs),
            "tenant as message group": (flood, FairQueue, setting),
            "tenant as message group, in packs (as we send)": (
                flood,
                partial(FairQueue, pack=packs.pack),
                packs,
            ),
        }
        for limit, back_s in _LIMITS:
            name = f"no grouping, at most {limit} of a tenant at once, others again after {back_s:g} s"
            ways[name] = (flood, Queue, replace(setting, tenant_limit=limit, sent_back_s=back_s))
        for how, (size, kind, each) in track(list(ways.items()), f"{pollers} pollers"):
            outcomes = [simulate(kind(mixed(size, seed, each.early_s)), each) for seed in range(_ROUNDS)]
            late = [late for outcome in outcomes for late in quiet(outcome)]
            ended = statistics.mean(max(outcome.lateness) for outcome in outcomes)
            sent_back = statistics.mean(outcome.sent_back for outcome in outcomes)
            extra = _extra_dollars(size + _QUIET, sent_back) if each.tenant_limit else 0.0
            found = [statistics.median(late), percentile(late, 0.99), max(late)]
            figures[f"{pollers} pollers, {how}"] = [*found, ended, sent_back, extra]
            cells = [
                *(f"{figure:.1f}" for figure in found),
                f"{ended:,.0f}",
                f"{sent_back:,.0f}",
                f"{extra:.4f}",
            ]
            rows.append([pollers, how, *cells])
    measured_rows, measured = _measured(max(50, int(_MEASURED_FLOOD * scale)))
    head = ["pollers", "queue", "p50", "p99", "most", "all done after", "sent back", "$ more a burst"]
    return Result(
        "fairness",
        scale,
        tables=[
            Table(f"What {_QUIET} tenants with one execution each wait, s, beside one with {flood:,} (simulated)",
                  head, rows),
            Table("A flood on the embedded AWS, which knows no grouping: what the others wait, s",
                  ["executions", "", "p50", "p99", "most"], measured_rows),
        ],
        goals=[],
        figures=figures | measured,
        notes=[
            "A limit of our own needs a count for each tenant that every executor keeps: two more writes for each"
            " execution, one for each that goes back, and its way through the queue.",
        ],
    )  # fmt: skip


def mixed(flood: int, seed: int = 8, early_s: float = 0.0) -> list[Message]:
    """The flood of one tenant and one message of each quiet one, in any order, all due at one second."""
    tenants = [*([_NOISY] * flood), *range(1, _QUIET + 1)]
    random.Random(seed).shuffle(tenants)
    return [Message(early_s * (n / len(tenants) - 1), 0.0, tenant) for n, tenant in enumerate(tenants)]


def quiet(outcome: Outcome) -> list[float]:
    """The waits of the quiet tenants."""
    pairs = zip(outcome.tenants, outcome.lateness, strict=True)
    return [late for tenant, late in pairs if tenant != _NOISY]


def _extra_dollars(executions: int, sent_back: float) -> float:
    """The cost of counting each execution up and down; a deferred one costs a refused count and a second delivery."""
    write, message = PRICES["dynamodb_write_unit"], PRICES["sqs_request"] + PRICES["sqs_fair_queue_request"]
    executor = PRICES["lambda_request"] / BATCH
    return executions * 2 * write + sent_back * (write + 3 * message / BATCH + executor)


def _measured(flood: int) -> tuple[list[list[str]], dict[str, list[float]]]:
    """The same on the embedded AWS, next to the model of it."""
    tenants = [message.tenant for message in mixed(flood)]
    with engine() as found:
        warm_up(found)
        due_at = int(time.time()) + 10 + len(tenants) // 6
        # The engine has 50 tenants: the place of a job shows which quiet tenant it belongs to.
        executions = register(
            found, "flood", [due_at] * len(tenants), lambda n: f"tenant-{max(0, tenants[n] - 1)}"
        )
        assert len(executions) == len(tenants), (
            "this machine was too slow to register them before their second"
        )
        late = lateness_of(found, executions)
        setting = measured_setting(found, max(CONCURRENCY), [due_at], len(tenants))
    measured = [late_s for late_s, tenant in zip(late, tenants, strict=True) if tenant != _NOISY]
    outcomes = [simulate(mixed(flood, seed, setting.early_s), setting) for seed in range(_ROUNDS)]
    modelled = [late_s for outcome in outcomes for late_s in quiet(outcome)]
    rows, figures = [], {}
    for who, waits in {"measured": measured, "modelled": modelled}.items():
        found_s = [statistics.median(waits), percentile(waits, 0.99), max(waits)]
        rows.append([f"{flood} and {_QUIET}", who, *(f"{figure:.1f}" for figure in found_s)])
        figures[f"embedded, {who}"] = found_s
    return rows, figures

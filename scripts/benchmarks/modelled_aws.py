"""What AWS publishes about queues, pollers, environments and tables, as parts of the model of docs/capacity.md."""

from __future__ import annotations

import heapq
import itertools
import json
import random
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from common.planning.packs import WAKE_HOLD_S, WAKE_S, hold_s
from scripts.measure.result import RESULTS

BATCH = 10
# Received and not deleted, of one queue:
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html
MAX_IN_FLIGHT = 120_000


@dataclass(slots=True)
class Message:
    """One execution: visible from `visible_at` on, due at `due_at`; in seconds."""

    visible_at: float
    due_at: float
    tenant: int
    receives: int = 0
    is_copy: bool = False


class Queue:
    """Messages in the order in which they become visible, including those that come back."""

    def __init__(
        self, messages: Iterable[Message], pack: int = 1, doubled: int = 0, again_after_s: float = 0.0
    ) -> None:
        """`pack` of the executions travel in a message. `doubled`, `again_after_s`: as in `Setting`."""
        self._max_in_flight = MAX_IN_FLIGHT * pack
        self._coming = iter(messages)
        self._next = next(self._coming, None)
        # In flight until their visibility timeout is over.
        self._hidden: list[tuple[float, int, Message]] = []
        # Not in flight until they are received again.
        self._copies: list[tuple[float, int, Message]] = []
        self._doubled, self._again_after_s = doubled, again_after_s
        self._numbers = itertools.count()
        self._taken = itertools.count(1)
        self.begin_at = self._next.visible_at if self._next else 0.0
        self.in_flight = 0

    @property
    def is_empty(self) -> bool:
        return self._next is None and not self.in_flight

    def can_give(self, now: float) -> bool:
        """Whether a batch is available."""
        if _is_out(self._hidden, now):
            return True
        waits = self._next is not None and self._next.visible_at <= now
        return (waits or _is_out(self._copies, now)) and self.in_flight < self._max_in_flight

    def take(self, now: float, count: int = BATCH) -> list[Message]:
        """A batch of visible messages."""
        batch: list[Message] = []
        while len(batch) < count and _is_out(self._hidden, now):
            batch.append(heapq.heappop(self._hidden)[2])
        while len(batch) < count and self.in_flight < self._max_in_flight and (message := self._first(now)):
            batch.append(message)
            self.in_flight += 1
        for message in batch:
            message.receives += 1
            if self._doubled and not next(self._taken) % self._doubled:
                copy = replace(message, is_copy=True)
                heapq.heappush(self._copies, (now + self._again_after_s, next(self._numbers), copy))
        return batch

    def hide(self, message: Message, until: float) -> None:
        """A message that was not deleted stays in flight until its visibility timeout, and is then received again."""
        heapq.heappush(self._hidden, (until, next(self._numbers), message))

    def delete(self, count: int) -> None:
        self.in_flight -= count

    def _first(self, now: float) -> Message | None:
        """Take the message that has been visible for longest; a copy after those that have not come yet."""
        if self._next is not None and self._next.visible_at <= now:
            message, self._next = self._next, next(self._coming, None)
            return message
        return heapq.heappop(self._copies)[2] if _is_out(self._copies, now) else None


def _is_out(heap: list[tuple[float, int, Message]], now: float) -> bool:
    return bool(heap) and heap[0][0] <= now


# A partition gives this many units a second, even if the table has more.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
PARTITION_READS, PARTITION_WRITES = 3_000, 1_000
# The initial throughput of a new on-demand table.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
NEW_TABLE_READS, NEW_TABLE_WRITES = 12_000, 4_000
# botocore's "standard" mode as common/storage/aws.py sets it: four attempts, a random part of 1, 2, 4 s between them.
# https://docs.aws.amazon.com/boto3/latest/guide/retries.html
ATTEMPTS = 4


class Partitions:
    """One table's units of one kind; each partition begins with the units of one second."""

    def __init__(self, units_a_second: int, partition_units: int) -> None:
        self.count = max(1, round(units_a_second / partition_units))
        self._max = units_a_second / self.count
        self._units = [self._max] * self.count
        self._at = [0.0] * self.count
        self.refused = 0

    def take(self, partition: int, units: float, now: float) -> bool:
        """False if this partition has none left at the moment."""
        units_left = min(self._max, self._units[partition] + (now - self._at[partition]) * self._max)
        self._at[partition] = now
        self._units[partition] = units_left - units if units_left >= units else units_left
        self.refused += units_left < units
        return units_left >= units


def backoff_s(attempt: int, rng: random.Random) -> float:
    """The client's wait after its n-th attempt, from 1."""
    return rng.random() * 2.0 ** (attempt - 1)


@dataclass(frozen=True, slots=True)
class Service:
    """Where nothing is throttled: from a batch's begin, or its second, to each call; and whole."""

    leads_s: tuple[float, ...]
    whole_s: float

    @property
    def last_s(self) -> float:
        """To the last call; to the end of a batch without any."""
        return max(self.leads_s, default=self.whole_s)

    def lead_s(self, number: int) -> float:
        """To the call of this message; in turn where there are more messages than were measured."""
        return self.leads_s[number % len(self.leads_s)] if self.leads_s else self.whole_s


@dataclass(frozen=True, slots=True)
class Timing:
    """Of batches of these many executions, in order: when the median and the last call go out, and when it ends."""

    counts: tuple[int, ...]
    half_s: tuple[float, ...]
    last_s: tuple[float, ...]
    whole_s: tuple[float, ...]

    def service(self, count: int) -> Service:
        """A batch of `count`, between the two sizes that were measured. Its calls go out evenly."""
        half_s, last_s, whole_s = (
            self._at(values, count) for values in (self.half_s, self.last_s, self.whole_s)
        )
        first_s = max(0.0, 2 * half_s - last_s)
        step_s = (last_s - first_s) / max(1, count - 1)
        return Service(tuple(first_s + n * step_s for n in range(count)), max(whole_s, last_s))

    def _at(self, values: tuple[float, ...], count: int) -> float:
        high = min(max(1, bisect_left(self.counts, count)), len(self.counts) - 1)
        low = high - 1
        part = (count - self.counts[low]) / (self.counts[high] - self.counts[low])
        return values[low] + min(1.0, max(0.0, part)) * (values[high] - values[low])


@dataclass(frozen=True, slots=True)
class Measured:
    """The executor with this memory: a warm environment, one whose first batch it is, and one that was only woken.

    Its first wake takes `first_wake_s`, a later one `wake_s`; in a full batch the first takes longer (packs.hold_s).
    """

    warm: Timing
    cold: Timing
    woken: Timing
    init_s: float
    first_wake_s: float
    wake_s: float


def measured(memory_mb: int) -> Measured:
    """From the kept result of `strict_lateness`."""
    figures: Mapping[str, Any] = json.loads((RESULTS / "strict_lateness.json").read_text())["figures"]
    sizes = {
        int(name.split()[-1]): batch for name, batch in figures.items() if name.startswith(f"{memory_mb} MB")
    }
    counts = tuple(sorted(sizes))

    def timing(*names: str) -> Timing:
        return Timing(counts, *(tuple(sizes[count][name] for count in counts) for name in names))

    return Measured(
        timing("half_s", "warm_s", "billed_s"),
        timing("cold_half_s", "cold_s", "cold_took_s"),
        timing("woken_half_s", "woken_s", "woken_took_s"),
        *(max(sizes[count][name] for count in counts) for name in ("init_s", "first_wake_s", "wake_s")),
    )


# Default polling: 5 concurrent batches, 300 more each minute, at most 1,250. Lambda may begin with 2, unless the
# mapping has a maximum concurrency, as it has by default.
_DEFAULT_START, _DEFAULT_A_MINUTE, _DEFAULT_MAX = 5, 300, 1_250
SLOW_START_BATCHES = 2
# A provisioned poller runs 10 at once and asks 10 times a second; together they add 1,000 concurrency a minute, up to
# 20,000.
_A_POLLER, POLLS_A_SECOND, _POLLED_A_MINUTE, _POLLED_MAX = 10, 10, 1_000, 20_000
# Lambda: 1,000 new environments in 10 s and function.
ENVIRONMENTS_AT_ONCE, ENVIRONMENTS_A_SECOND = 1_000, 100


@dataclass(frozen=True, slots=True)
class Setting:
    """The parameters of serverless.yml, the account's limit, and durations."""

    # Functions that read the queue, each with its own mapping. serverless.yml has one.
    functions: int = 1
    minimum_pollers: int = 0
    maximum_pollers: int = 0
    maximum_concurrency: int = 0
    # Batches at once before default polling grows.
    first_batches: int = _DEFAULT_START
    # Tenants share a burst evenly; a tenant's jobs are in one partition.
    tenants: int = 1_000
    warm_reads: int = NEW_TABLE_READS
    warm_writes: int = NEW_TABLE_WRITES
    batch: int = BATCH
    # Executions of a message.
    pack: int = 1
    # An execution that DynamoDB turned away comes again after this, then after twice as long, up to `max_again_s`.
    again_s: float = 2
    max_again_s: float = 900
    max_receives: int = 30
    account_concurrency: int = 1_000
    # The duration of `Event` targets in the same account; 0: they are in another account.
    target_s: float = 0.0
    # A message becomes visible up to this long before its second: delays are whole seconds; ticks send late in each.
    early_s: float = 0.12
    # And at least this long before it.
    latest_s: float = 0.0
    # The durations of the batches in turn; then from the first on again. `executor`, if given, says them by their size.
    services: Sequence[Service] = (Service((0.1,), 0.3),)
    executor: Measured | None = None
    cold_s: float = 1.2
    warm_environments: int = 0
    # Messages without an execution, some seconds before the burst (common/planning/packs.py).
    wakes: int = 0
    # How often the pollers look.
    look_s: float = 0.02
    # They look when a batch ends too, but not so soon after an empty look (the embedded AWS). 0: steadily.
    after_empty_s: float = 0.0
    # Each so many-th message comes twice, the second time so much later (the strict layer). 0: none does.
    doubled: int = 0
    again_after_s: float = 0.0


@dataclass(slots=True)
class Outcome:
    """A load's results. Lateness counts until the call goes out."""

    lateness: list[float] = field(default_factory=list)
    batches: int = 0
    # Those with wakes only, among the batches.
    wakes: int = 0
    busy_s: float = 0.0
    max_executors: int = 0
    max_in_flight: int = 0
    throttled: int = 0
    came_back: int = 0
    dead: int = 0
    targets_done_at: float = 0.0


def allowed(setting: Setting, at: float) -> int:
    """The most concurrent batches of one function's mapping, `at` seconds after messages arrived."""
    at = max(0.0, at)
    if setting.minimum_pollers:
        return min(pollers(setting, at) * _A_POLLER, _POLLED_MAX)
    grown = min(_DEFAULT_MAX, setting.first_batches + int(at / 60 * _DEFAULT_A_MINUTE))
    return min(grown, setting.maximum_concurrency) if setting.maximum_concurrency else grown


def pollers(setting: Setting, at: float) -> int:
    """Provisioned pollers `at` seconds after messages arrived."""
    maximum = max(setting.maximum_pollers, setting.minimum_pollers)
    return min(maximum, setting.minimum_pollers + int(at / 60 * _POLLED_A_MINUTE / _A_POLLER))


# Without a measured executor.
_FIRST_WAKE_S, _LATER_WAKE_S = 0.5, 0.1


def woken(setting: Setting) -> tuple[int, float]:
    """The environments of each function at the burst, and how long all of its wakes keep them busy, s.

    A batch of wakes goes to an environment that is free, else it starts one: as long as the first ones start, the
    others start more. The burst's own polling begins anew.
    """
    executor = setting.executor
    first_s = setting.cold_s + (executor.first_wake_s if executor else _FIRST_WAKE_S)
    first_s += hold_s(min(BATCH, setting.wakes), is_new=True) - WAKE_HOLD_S
    later_s = executor.wake_s if executor else _LATER_WAKE_S
    waiting, busy_s, polls, at = -(-setting.wakes // (BATCH * setting.functions)), 0.0, 0.0, 0.0
    started, idle = 0, 0
    ends: list[float] = []
    while waiting and at < WAKE_S:
        idle += sum(end <= at for end in ends)
        ends = [end for end in ends if end > at]
        places = min(waiting, allowed(setting, at) - len(ends), idle + ENVIRONMENTS_AT_ONCE - started)
        if setting.minimum_pollers:
            ready = pollers(setting, at)
            polls = min(ready, polls + ready * POLLS_A_SECOND * setting.look_s)
            places = min(places, int(polls))
            polls -= places
        reused = min(idle, places)
        idle, started, waiting = idle - reused, started + places - reused, waiting - places
        ends += [at + later_s] * reused + [at + first_s] * (places - reused)
        busy_s += reused * later_s + (places - reused) * first_s
        at += setting.look_s
    return started, busy_s + waiting * later_s

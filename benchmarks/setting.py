"""The model's parameters and results; how AWS's pollers and environments grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.modelled_queue import BATCH
from benchmarks.service import Service as Service
from benchmarks.throttle import NEW_TABLE_READS, NEW_TABLE_WRITES
from benchmarks.timing import Measured

# Default polling: 5 concurrent batches, 300 more each minute, at most 1,250.
_DEFAULT_START, _DEFAULT_A_MINUTE, _DEFAULT_MOST = 5, 300, 1_250
# A provisioned poller runs 10 at once and asks 10 times a second; together they add 1,000 concurrency a minute, up to
# 20,000.
_A_POLLER, POLLS_A_SECOND, _POLLED_A_MINUTE, _POLLED_MOST = 10, 10, 1_000, 20_000
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
    # Tenants share a burst evenly; a tenant's jobs are in one partition.
    tenants: int = 1_000
    warm_reads: int = NEW_TABLE_READS
    warm_writes: int = NEW_TABLE_WRITES
    batch: int = BATCH
    # Executions of a message.
    pack: int = 1
    # An execution that DynamoDB turned away comes again after this, and after twice as long each time, up to the most.
    again_s: float = 2
    most_again_s: float = 300
    most_receives: int = 20
    account_concurrency: int = 1_000
    # The duration of `Event` targets in the same account; 0: they are in another account.
    target_s: float = 0.0
    # A message becomes visible up to this long before its second: delays are whole seconds; ticks send late in each.
    early_s: float = 0.12
    # The durations of the batches in turn; then from the first on again. `executor`, if given, says them by their size.
    services: Sequence[Service] = (Service((0.1,), 0.3),)
    executor: Measured | None = None
    cold_s: float = 1.2
    warm_environments: int = 0
    # Messages without an execution, some seconds before the burst (common/planning/packs.py).
    wakes: int = 0
    # One tenant's most running executions, and the delay of those above it in the queue; 0: no limit.
    tenant_limit: int = 0
    sent_back_s: float = 1.0
    # How often the pollers look.
    look_s: float = 0.02
    # False: the concurrency does not grow, and nothing limits polling (the embedded AWS).
    grows: bool = True


@dataclass(slots=True)
class Outcome:
    """A load's results. Lateness counts until the call goes out."""

    lateness: list[float] = field(default_factory=list)
    # The tenant of each.
    tenants: list[int] = field(default_factory=list)
    batches: int = 0
    # Those with wakes only, among the batches.
    wakes: int = 0
    busy_s: float = 0.0
    most_executors: int = 0
    most_in_flight: int = 0
    throttled: int = 0
    came_back: int = 0
    dead: int = 0
    sent_back: int = 0
    targets_done_at: float = 0.0


def allowed(setting: Setting, at: float) -> int:
    """The most concurrent batches of one function's mapping, `at` seconds after messages arrived."""
    at = max(0.0, at) if setting.grows else 0.0
    if setting.minimum_pollers:
        return min(pollers(setting, at) * _A_POLLER, _POLLED_MOST)
    grown = min(_DEFAULT_MOST, _DEFAULT_START + int(at / 60 * _DEFAULT_A_MINUTE))
    if not setting.grows:
        return setting.maximum_concurrency or grown
    return min(grown, setting.maximum_concurrency) if setting.maximum_concurrency else grown


def pollers(setting: Setting, at: float) -> int:
    """Provisioned pollers `at` seconds after messages arrived."""
    most = max(setting.maximum_pollers, setting.minimum_pollers)
    return min(most, setting.minimum_pollers + int(at / 60 * _POLLED_A_MINUTE / _A_POLLER))

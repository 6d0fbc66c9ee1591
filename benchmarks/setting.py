"""The model's parameters and results; how AWS's pollers and environments grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.modelled_queue import BATCH
from benchmarks.throttle import NEW_TABLE_READS, NEW_TABLE_WRITES

# Default polling: 5 concurrent batches, 300 more each minute, at most 1,250.
_DEFAULT_START, _DEFAULT_A_MINUTE, _DEFAULT_MOST = 5, 300, 1_250
# A provisioned poller runs 10 at once and asks 10 times a second; together they add 1,000 concurrency a minute, up to
# 20,000.
_A_POLLER, POLLS_A_SECOND, _POLLED_A_MINUTE, _POLLED_MOST = 10, 10, 1_000, 20_000
# Lambda: 1,000 new environments in 10 s and function.
ENVIRONMENTS_AT_ONCE, ENVIRONMENTS_A_SECOND = 1_000, 100


@dataclass(frozen=True, slots=True)
class Service:
    """How long one batch takes where nothing is throttled: from its begin, or its second, to each claim; and whole."""

    leads_s: tuple[float, ...]
    whole_s: float


@dataclass(frozen=True, slots=True)
class Setting:
    """What serverless.yml sets, the account's limit, and how long things take."""

    # Functions that read the queue, each with a mapping of its own. serverless.yml has one.
    functions: int = 1
    minimum_pollers: int = 0
    maximum_pollers: int = 0
    maximum_concurrency: int = 0
    # They share a burst evenly; a tenant's jobs lie in one partition.
    tenants: int = 1_000
    warm_reads: int = NEW_TABLE_READS
    warm_writes: int = NEW_TABLE_WRITES
    batch: int = BATCH
    visibility_s: float = 360
    most_receives: int = 20
    account_concurrency: int = 1_000
    # `Event` targets in the same account run so long; 0: they are in another one.
    target_s: float = 0.0
    # A message is out up to so long before its second: delays are whole seconds, and ticks send late in each.
    early_s: float = 0.12
    # One batch after the other lasts so long, and then from the first on again.
    services: Sequence[Service] = (Service((0.1,), 0.3),)
    cold_s: float = 1.2
    warm_environments: int = 0
    # So many of one tenant's executions at once, and others go back to the queue for so long; 0: no limit.
    tenant_limit: int = 0
    sent_back_s: float = 1.0
    # How often the pollers look.
    look_s: float = 0.02
    # False: the first concurrency is all there is, and nothing limits polling (the embedded AWS).
    grows: bool = True


@dataclass(slots=True)
class Outcome:
    """What a load met. Lateness counts to the claim, after which there is only the call."""

    lateness: list[float] = field(default_factory=list)
    # Whose they were.
    tenants: list[int] = field(default_factory=list)
    batches: int = 0
    busy_s: float = 0.0
    most_executors: int = 0
    most_in_flight: int = 0
    throttled: int = 0
    came_back: int = 0
    dead: int = 0
    sent_back: int = 0
    targets_done_at: float = 0.0


def allowed(setting: Setting, at: float) -> int:
    """How many batches one function's mapping may have under way `at` seconds after messages came."""
    at = max(0.0, at) if setting.grows else 0.0
    if setting.minimum_pollers:
        return min(pollers(setting, at) * _A_POLLER, _POLLED_MOST)
    grown = min(_DEFAULT_MOST, _DEFAULT_START + int(at / 60 * _DEFAULT_A_MINUTE))
    if not setting.grows:
        return setting.maximum_concurrency or grown
    return min(grown, setting.maximum_concurrency) if setting.maximum_concurrency else grown


def pollers(setting: Setting, at: float) -> int:
    """Provisioned pollers `at` seconds after messages came."""
    most = max(setting.maximum_pollers, setting.minimum_pollers)
    return min(most, setting.minimum_pollers + int(at / 60 * _POLLED_A_MINUTE / _A_POLLER))

"""What one tenant's flood costs others, simulated from AWS's published rule: the embedded AWS has no fair queues.

A tenant with more than a tenth of what is in flight is noisy, and its messages wait while others have any.
https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-fair-queues.html
"""

from __future__ import annotations

import random
import statistics

from benchmarks.measure import percentile
from benchmarks.model import BATCH, Setting, allowed, burst
from benchmarks.result import Result, Table

_FLOOD, _QUIET = 5_000, 50
_ROUNDS = 200


def run(scale: float) -> Result:
    """One tenant with 5,000 executions at the second where 50 tenants have one each."""
    flood = max(100, int(_FLOOD * scale))
    rows, figures = [], {}
    for name, setting in {
        "default pollers": Setting(),
        "20-50 pollers": Setting(minimum_pollers=20, maximum_pollers=50),
    }.items():
        begins = sorted(burst(flood + _QUIET, setting).lateness)
        alone = sorted(burst(_QUIET, setting).lateness)
        first_wave = allowed(setting, 0)
        waits = {
            "without the flood": alone,
            "one queue, no grouping": _mixed(begins),
            "tenant as message group (as we send)": _fair(begins, first_wave),
        }
        for how, late in waits.items():
            found = [statistics.median(late), percentile(late, 0.99), max(late)]
            rows.append([name, how, *(f"{figure:.1f}" for figure in found)])
            figures[f"{name}, {how}"] = found
    title = f"What {_QUIET} tenants with one execution each wait, s, beside one with {flood:,} (simulated)"
    head = ["pollers", "queue", "p50", "p99", "most"]
    note = (
        "Nothing in our own code limits how many of one tenant's executions run at once: the queue's grouping does the"
        " work, and costs $0.03 per million runs."
    )
    return Result(
        "fairness", scale, tables=[Table(title, head, rows)], goals=[], figures=figures, notes=[note]
    )


def _mixed(begins: list[float]) -> list[float]:
    """Without groups a quiet tenant's message is anywhere in the queue."""
    rng = random.Random(8)
    return [rng.choice(begins) for _ in range(_ROUNDS * _QUIET)]


def _fair(begins: list[float], first_wave: int) -> list[float]:
    """The first batches are taken before anyone is noisy; then the quiet tenants come first."""
    rng = random.Random(8)
    late = []
    for _ in range(_ROUNDS):
        places = [rng.randrange(len(begins)) for _ in range(_QUIET)]
        late += [begins[place] for place in places if place < first_wave]
        after = sum(place >= first_wave for place in places)
        late += [begins[min(len(begins) - 1, first_wave + number // BATCH)] for number in range(after)]
    return late

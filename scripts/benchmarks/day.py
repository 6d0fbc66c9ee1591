"""A platform's whole day, a million runs of the mix: how full batches are, and what a run costs then."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from common.limits import MAX_IN_A_PACK
from common.planning.execution import Execution
from common.planning.packs import PACK_FROM, QueueMessage, packed
from common.planning.plan import plan
from common.planning.queue import EARLY
from common.timing.instants import DAY_S
from scripts.benchmarks import workload
from scripts.benchmarks.modelled_aws import Setting, allowed
from scripts.benchmarks.requests import EXECUTOR_GB, EXECUTOR_MB
from scripts.measure.prices import PRICES
from scripts.measure.result import Goal, Result, Table, kept
from scripts.measure.rounds import track

_MILLION = 1_000_000
_BATCH = 10
# Lambda keeps five long polls open for a queue with little in it.
# https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
POLLS = 5
# No two messages are received together.
_ALONE = math.inf
# Of a large crowd so many batches are held, for this long at most (packs.EARLY_FROM).
_EARLY_S = 1 - EARLY[0]
_EARLY_BATCHES = allowed(Setting(), _EARLY_S)
# Of provisioned units, as auto scaling keeps them (serverless.yml).
_USED = 0.7
_HOUR_S = 3600
_JOB, _RULES, _RUN = "read of the job", "read of the tenants' rules", "write of the run: its history"
_WINDOW_S = 600
SAMPLE = 20_000
_PACK_FROM = (50, 10, 5, 2, PACK_FROM)


@dataclass(slots=True)
class Load:
    """So many executions, their messages, and their batches by the number of executions in each."""

    executions: int = 0
    messages: int = 0
    batches: Counter[int] = field(default_factory=Counter)
    # Of them, those that are held from early in the second before.
    early: int = 0

    def add(self, sizes: list[int], batches: int) -> None:
        """Messages of these sizes that are received in so many batches, as even as can be."""
        self.executions += sum(sizes)
        self.messages += len(sizes)
        self.batches.update(sum(sizes[first::batches]) for first in range(batches))


def run(scale: float) -> Result:
    """Plan a day of so many jobs that a million runs are due at scale 1."""
    windows = windows_of_day(max(SAMPLE // 10, round(jobs_for(_MILLION) * scale)))
    mixes = {
        pack_from: [load_of(windows, pack_from, polls) for polls in (1, POLLS, _ALONE)]
        for pack_from in _PACK_FROM
    }
    single, crowded = Load(), Load()
    single.add([1] * _BATCH, 1)
    crowded.add([MAX_IN_A_PACK] * _BATCH, 1)
    full, parted, _ = mixes[PACK_FROM]
    columns = {
        "ten single messages a batch": bill_of(single),
        "ten packs a batch": bill_of(crowded),
        "the mix, batches as full as can be": bill_of(full),
        f"the mix, {POLLS} polls share each second": bill_of(parted),
    }
    rows = [
        [name, *(f"{bill[name]:.4f}" for bill in columns.values())] for name in columns["ten packs a batch"]
    ]
    sums = {name: (sum(bill.values()), sum(_provisioned(bill).values())) for name, bill in columns.items()}
    on_demand, provisioned = zip(*sums.values(), strict=True)
    rows.append(["**sum, on demand**", *(f"**{dollars:.2f}**" for dollars in on_demand)])
    rows.append(
        [f"**sum, provisioned, {_USED:.0%} used**", *(f"**{dollars:.2f}**" for dollars in provisioned)]
    )
    return Result(
        "day",
        scale,
        tables=[
            Table("Dollars per million `Event` runs with full history", ["for", *columns], rows),
            Table(
                "The mix by `packFrom`",
                ["`packFrom`", "messages", "batches", "dollars", "dollars, each message alone"],
                _by_pack_from(mixes),
            ),
        ],
        goals=[
            Goal("cost of a million `Event` runs in full batches of packs, $", 0.85, on_demand[1], False),
            Goal("the same with provisioned tables, $", 0.50, provisioned[1], False),
            Goal(
                "cost of a million runs of the mix, batches as full as can be, $", 1.10, on_demand[2], False
            ),
            Goal(f"the same, if {POLLS} polls share each second, $", 1.10, on_demand[3], False),
        ],
        figures={
            name: {"on_demand": dollars[0], "provisioned": dollars[1]} for name, dollars in sums.items()
        },
        notes=[
            f"The mix has {full.executions:,} executions in a day. Messages of a second are received by one poll after"
            f" the other at the least cost, and by {POLLS} polls at once in the other column."
        ],
    )


def _by_pack_from(mixes: Mapping[int, Sequence[Load]]) -> list[list[str]]:
    return [
        [
            str(pack_from),
            f"{full.messages:,}",
            f"{full.batches.total():,} to {parted.batches.total():,}",
            f"{sum(bill_of(full).values()):.2f} to {sum(bill_of(parted).values()):.2f}",
            f"{sum(bill_of(alone).values()):.2f}",
        ]
        for pack_from, (full, parted, alone) in mixes.items()
    ]


def jobs_for(executions: int) -> int:
    """How many jobs of the mix have so many executions in a day."""
    entries = map(workload.entry, range(SAMPLE))
    executions_a_day = sum(
        len(plan(entry, workload.DAY, workload.DAY + DAY_S, workload.DAY).executions) for entry in entries
    )
    return round(executions * SAMPLE / executions_a_day)


def windows_of_day(jobs: int) -> list[list[Execution]]:
    """The executions of a day, by window."""
    windows: defaultdict[int, list[Execution]] = defaultdict(list)
    for number in track(range(jobs), "jobs planned"):
        for execution in plan(
            workload.entry(number), workload.DAY, workload.DAY + DAY_S, workload.DAY
        ).executions:
            windows[execution.fire_at // _WINDOW_S].append(execution)
    return list(windows.values())


def load_of(windows: Sequence[list[Execution]], pack_from: int, polls: float) -> Load:
    """The load of these windows, if so many polls share the messages of each second."""
    load = Load()
    for executions in windows:
        seconds: defaultdict[int, list[QueueMessage]] = defaultdict(list)
        for pack in packed(executions, pack_from):
            seconds[pack.visible_at].append(pack)
        for packs in seconds.values():
            batches = int(max(-(-len(packs) // _BATCH), min(len(packs), polls)))
            load.add([len(pack.executions) for pack in packs], batches)
            load.early += min(batches, _EARLY_BATCHES) * any(pack.is_early for pack in packs)
    return load


def bill_of(load: Load) -> dict[str, float]:
    """Dollars per million executions, by purpose."""
    counted, (strict,) = kept(["requests"])[0].figures, kept(["strict_lateness"])
    lines, held = counted["Event"]["lines"], counted["held"]
    took_s = sum(
        count * (held["mean_s"] * bool(executions) + _batch_s(strict.figures, executions))
        for executions, count in load.batches.items()
    )
    took_s += load.early * (_EARLY_S - held["mean_s"])
    a_million = _MILLION / load.executions
    batches = load.batches.total()
    requests = load.messages / _BATCH + 2 * batches
    return {
        "queue: send, receive, delete": requests * a_million * PRICES["sqs_request"],
        "queue: tenants apart (fair queue)": requests * a_million * PRICES["sqs_fair_queue_request"],
        "executor: invocations": batches * a_million * PRICES["lambda_request"],
        "executor: GB-s": took_s * a_million * EXECUTOR_GB * PRICES["lambda_gb_s_arm64"],
        **{name: lines[name] for name in (_JOB, _RULES, _RUN, "planning: entries read")},
        "planning: GB-s": lines["planning: GB-s, waiting for the late part of each second"],
    }


def _batch_s(strict: dict[str, dict[str, float]], executions: int) -> float:
    """How long a warm batch of so many executions takes under quota and TLS: between the measured sizes, a line.

    One without executions has wakes.
    """
    if not executions:
        return strict[f"{EXECUTOR_MB} MB, batches of {_BATCH}"]["wake_s"]
    known = [(size, strict[f"{EXECUTOR_MB} MB, batches of {size}"]["billed_s"]) for size in (1, 10, 100)]
    for (fewer, shorter_s), (more, longer_s) in pairwise(known):
        if executions <= more:
            return shorter_s + (longer_s - shorter_s) * (executions - fewer) / (more - fewer)
    raise ValueError(f"a batch of {executions} executions was not measured; the largest has {known[-1][0]}")


def _provisioned(bill: dict[str, float]) -> dict[str, float]:
    """With units by the hour for the job's read and the run's write, of which `_USED` are used."""
    read, write = (
        PRICES[f"dynamodb_{kind}_unit_hour"] / _HOUR_S / _USED / PRICES[f"dynamodb_{kind}_unit"]
        for kind in ("read", "write")
    )
    return bill | {_JOB: bill[_JOB] * read, _RUN: bill[_RUN] * write}

"""What is coming on the whole platform, as ticks counted it: an operator reads it in a few requests.

Each partition of the due index has its counts of the coming day in some portions of several windows each. A new count
replaces them all at once. The counts say when they were made; jobs that changed later are counted as they were.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from common.planning.platform_density import PARTITIONS, PlatformDensity, WindowDensity
from common.storage import keys
from common.storage.portions import Portions
from common.storage.table import Table
from common.texts import unpacked
from common.timing.instants import DAY_S

# Older counts are not shown. Nobody has asked for them then, and ticks have stopped.
MAX_AGE_S: Final = 3 * 3_600
# Of a window the tenants with the most executions are named.
_TENANTS: Final = 2_000
# Of a portion before compression, to which a window and a total of up to 140 KB each are added. An item holds 400 KB.
_PORTION_CHARS: Final = 120_000
_MAX_TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Coming:
    """The executions of a range. The oldest counts of them were made at `counted_at`."""

    density: PlatformDensity
    counted_at: int


@dataclass(frozen=True, slots=True)
class ComingCounts:
    """The counts, in the runs table."""

    runs: Table

    def between(self, start: int, end: int, now: float) -> Coming | None:
        """The executions with fire times in [start, end), whole windows; None: not all of them are counted."""
        for _ in range(_MAX_TRIES):
            heads = self._heads()
            is_known = len(heads) == PARTITIONS and all(
                head["counted_at"] >= now - MAX_AGE_S and head["start"] <= start and end <= head["end"]
                for head in heads.values()
            )
            if not is_known:
                return None
            wholes = {
                keys.coming(number, name)["sk"]: is_whole
                for number, head in heads.items()
                for name, is_whole in _portions_between(head, start, end)
            }
            portion_keys: list[keys.Key] = [{"pk": keys.PROJECTION, "sk": sk} for sk in wholes]
            items = list(self.runs.get_many(portion_keys, consistent=False))
            if len(items) == len(portion_keys):
                return _coming(start, end, heads.values(), [(item, wholes[item["sk"]]) for item in items])
        return None  # a tick replaces them faster than they are read

    def counted_at(self) -> dict[int, int]:
        """When each partition was counted last."""
        return {number: head["counted_at"] for number, head in self._heads().items()}

    def store(self, partition: int, density: PlatformDensity, counted_at: int) -> None:
        """Put the counts of a partition in place of those before, unless another tick is doing that."""
        portions = list(_texts(density))
        head = {
            "counted_at": counted_at,
            "start": density.start,
            "end": density.end,
            "jobs": density.jobs,
            "unreadable": density.unreadable,
            "firsts": [first for first, _ in portions],
        }
        stored = Portions(self.runs, lambda name: keys.coming(partition, name))
        before = stored.head()
        stored.store(
            head,
            [text for _, text in portions],
            counted_at + DAY_S,
            replaces=before["token"] if before else "",
            dropped=before["portions"] if before else (),
        )

    def _heads(self) -> dict[int, Mapping[str, Any]]:
        head_keys = {keys.coming(number)["sk"]: number for number in range(PARTITIONS)}
        items = self.runs.get_many([keys.coming(number) for number in range(PARTITIONS)])
        return {head_keys[item["sk"]]: item for item in items}


def _portions_between(head: Mapping[str, Any], start: int, end: int) -> Iterator[tuple[str, bool]]:
    """The names of the portions with windows in [start, end), and whether all of their windows are."""
    spans = pairwise([*head["firsts"], head["end"]])
    for name, (first, until) in zip(head["portions"], spans, strict=True):
        if first < end and start < until:
            yield name, start <= first and until <= end


def _coming(
    start: int,
    end: int,
    heads: Collection[Mapping[str, Any]],
    items: Sequence[tuple[Mapping[str, Any], bool]],
) -> Coming:
    density = PlatformDensity(start, end)
    density.jobs = sum(head["jobs"] for head in heads)
    density.unreadable = sum(head["unreadable"] for head in heads)
    for item, is_whole in items:
        total, _, windows = unpacked(item["data"]).partition("\n")
        for at, minutes, tenants in json.loads(total if is_whole else windows):
            if start <= at < end:
                density.windows[at].merge(WindowDensity(Counter(dict(minutes)), Counter(tenants)))
    return Coming(density, min(head["counted_at"] for head in heads))


def _texts(density: PlatformDensity) -> Iterator[tuple[int, str]]:
    """The windows as texts of portions, each with the start of its first window.

    A text has the total of its windows in a line of its own, for those who read all of them.
    """
    portion: list[str] = []
    total, first, size = WindowDensity(), 0, 0
    for start, window in sorted(density.windows.items()):
        portion.append(_text(start, window))
        total.merge(window)
        first = first or start
        size += len(portion[-1])
        if size > _PORTION_CHARS:
            yield first, f"[{_text(first, total)}]\n[{','.join(portion)}]"
            portion, total, first, size = [], WindowDensity(), 0, 0
    if portion:
        yield first, f"[{_text(first, total)}]\n[{','.join(portion)}]"


def _text(start: int, window: WindowDensity) -> str:
    shown = [start, sorted(window.minutes.items()), dict(window.tenants.most_common(_TENANTS))]
    return json.dumps(shown, separators=(",", ":"))

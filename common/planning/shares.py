"""Shares: the due entries of a window, divided among planners if one process should not plan them all.

The tick records the shares, then marks which division of the window counts, and sends a message for each share. A
planner enqueues its share's executions and then deletes the record. The planner that finds no more records moves the
mark. If a message is lost, its record remains, and the next tick sends it again. A crash anywhere can only cause a
repetition, never a loss. A planner without time left records its progress, and sends the rest to another.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import Struct, json

from common.errors import Minute8Error
from common.planning.directory import Shard
from common.planning.due_index import DueIndex, PlanningProgress, Window
from common.planning.execution import version_of
from common.planning.pace import ALL_SECONDS, PaceSlice, pace_of
from common.planning.queue import BATCH_SIZE, HandOverFailed
from common.storage import keys
from common.storage.expressions import PRESENT, Attribute, change
from common.storage.table import Query, Table
from common.storage.unreadable import Unreadable
from common.storage.wire import DAMAGE, Item
from common.timing.groups import entry_weight
from common.timing.windows import MISSED_AFTER_S

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

# The names of the shards of one share. A DynamoDB item holds at most 400 KB.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
MAX_TEXT_BYTES = 300_000
# Reading an empty shard costs a planner about as much as reading this many entries.
_SHARD_WEIGHT = 8
# A share's number: its random division, and how many of its shares were recorded before.
_MAX_DIVISION_SHARES = 1_000_000


class UnreadableShare(Minute8Error):
    """A message that does not name a share. It belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Share:
    """One planner's part of a window, to be planned as the window was decided.

    `after` is the position in the first of its shards up to which another planner has enqueued it. `pace_slice` says
    which seconds are its own, if it is one slice of a pace.
    """

    key: keys.Key
    window: Window
    shards: tuple[Shard, ...]
    after: str = ""
    pace_slice: PaceSlice = ALL_SECONDS


class ShareDraft(NamedTuple):
    """The shards of a share that is not recorded yet, and its slice of a pace."""

    shards: Sequence[Shard]
    pace_slice: PaceSlice = ALL_SECONDS


class PlanningWork(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="v", tag=1):
    """What a message names: a share of the window that ends at `end`, or quarantined records, by their sort keys
    (common/planning/quarantine.py).
    """

    end: int = 0
    share: int = 0
    set_aside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.end and not self.set_aside:
            raise ValueError("it names nothing")

    @property
    def body(self) -> str:
        """The message."""
        return json.encode(self).decode()

    @classmethod
    def of(cls, body: str) -> PlanningWork:
        """What a message names. Raises UnreadableShare."""
        try:
            work = _BODIES.decode(body)
            if version_of(body) is None:
                raise ValueError("it has no version")
            return work
        except (ValueError, RecursionError) as error:
            raise UnreadableShare(f"not a share: {body[:200]!r} ({error!r})") from error


_BODIES: Final = json.Decoder(PlanningWork)


def divide(shards: Iterable[Shard], window: Window, max_entries: int) -> Iterator[ShareDraft]:
    """Shares in the order of the shards, those of paces last, each pace in one share.

    Each share is full by its planning cost (about `max_entries`), or by the bytes of its record. Only one share and the
    shards of paces are held in memory. A shard that is too large for a share becomes a share of its own. A pace that is
    too large is divided into slices.
    """
    span_s = window.end - max(window.start, int(window.decided_at) - MISSED_AFTER_S)
    for share in _filled(grouped_by_pace(shards), span_s, max_entries):
        if not pace_of(share[0].shard):
            yield ShareDraft(share)
            continue
        slices = list(_filled(([shard] for shard in share), span_s, max_entries))
        yield from (ShareDraft(part, PaceSlice(nth, len(slices))) for nth, part in enumerate(slices))


def grouped_by_pace(shards: Iterable[Shard]) -> Iterator[list[Shard]]:
    """The shards that are planned together: each shard alone; last the paces, each with all its shards."""
    paces: defaultdict[int, list[Shard]] = defaultdict(list)
    for shard in shards:
        if pace := pace_of(shard.shard):
            paces[pace].append(shard)
        else:
            yield [shard]
    yield from paces.values()


def _filled(shard_groups: Iterable[list[Shard]], span_s: int, max_entries: int) -> Iterator[list[Shard]]:
    share: list[Shard] = []
    share_weight = share_bytes = 0
    for shards in shard_groups:
        weight = sum(shard.jobs * entry_weight(shard.group, span_s) + _SHARD_WEIGHT for shard in shards)
        if pace_of(shards[0].shard):  # the planner also reads the pace's carryover
            weight += len(shards) * _SHARD_WEIGHT
        size = sum(len(_name(shard).encode()) + 1 for shard in shards)
        if share and (share_weight + weight > max_entries or share_bytes + size > MAX_TEXT_BYTES):
            yield share
            share, share_weight, share_bytes = [], 0, 0
        share += shards
        share_weight += weight
        share_bytes += size
    if share:
        yield share


class Shares:
    """The records of unfinished shares, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._index = DueIndex(table)

    def record(self, window: Window, drafts: Iterable[ShareDraft]) -> PlanningProgress:
        """Record all shares, unless another tick has divided or finished the window. Returns the stored progress.

        The shares count once planned_until names their division. If the tick stops before, `remove_stale` removes them.
        """
        division = 1 + secrets.randbelow(_MAX_DIVISION_SHARES)
        recorded = []
        for nth, draft in enumerate(drafts):
            key = keys.share(window.end, division * _MAX_DIVISION_SHARES + nth)
            self._table.put({**key, **share_item(window, *draft)})
            recorded.append(key)
        counts = change({"divided_until": window.end, "division": division})
        divided_until = Attribute("divided_until")
        undivided = (
            (Attribute("planned_until") == window.start)
            & (Attribute("planning_until") == window.end)
            & (divided_until.is_absent | (divided_until < window.end))
        )
        is_taken = self._table.update_if(keys.PROGRESS, counts, undivided) is not None
        progress = self._index.progress()
        assert progress is not None
        # A refusal may be of our own write, repeated after its answer was lost.
        if not is_taken and (progress.divided_until, progress.division) != (window.end, division):
            for key in recorded:
                self._table.delete(key)
        return progress

    def unconfirmed(self, progress: PlanningProgress) -> list[int]:
        """The numbers of a divided window's shares that are not confirmed."""
        prefix = keys.share_prefix(progress.planning_until)
        items = self._table.query(Query(keys.SHARES, sk_prefix=prefix, attributes=("sk",)))
        numbers = (item["sk"].removeprefix(prefix) for item in items)
        return [
            int(number)
            for number in numbers
            if number.isdecimal() and int(number) // _MAX_DIVISION_SHARES == progress.division
        ]

    def load(self, end: int, number: int) -> Share | Unreadable | None:
        """A share, or its item if it cannot be read; None if it is finished."""
        item = self._table.get(keys.share(end, number))
        if item is None:
            return None
        try:
            share = share_of(item, end)
            if share.window.decided_at >= end:
                raise ValueError(f"it was decided at {share.window.decided_at}, and ends at {end}")
            return share
        except DAMAGE as error:
            return Unreadable("due", keys.key_of(item), f"unreadable share: {error!r}"[:500], item)

    def advance(self, share: Share, remaining: Sequence[Shard], after: str) -> bool:
        """Record the remaining shards of a share, after the position `after`. False if the share is confirmed."""
        progress = change({"shards": _names(remaining), "after": after, "tries": 0})
        return self._table.update_if(share.key, progress, PRESENT) is not None

    def confirm(self, share: Share) -> None:
        """Delete the share: its executions are enqueued."""
        self._table.delete(share.key)

    def finish_if_last(self, end: int) -> None:
        """Move planned_until over a divided window that has no shares left."""
        # planned_until first: when it says "divided", all shares are recorded, and none is added later.
        progress = self._index.progress()
        if (
            progress
            and progress.is_divided
            and progress.planning_until == end
            and not self.unconfirmed(progress)
        ):
            self._index.finish_planning(end)

    def remove_stale(self, planned_until: int) -> None:
        """Remove shares of windows that are planned: their tick recorded them too late."""
        between = keys.begins_between(0, planned_until)
        for item in self._table.query(Query(keys.SHARES, sk_between=between, attributes=("pk", "sk"))):
            self._table.delete(keys.key_of(item))


def share_item(window: Window, shards: Sequence[Shard], pace_slice: PaceSlice = ALL_SECONDS) -> Item:
    """The attributes of a share's record."""
    item = {"start": window.start, "decided_at": window.decided_at, "shards": _names(shards)}
    return item if pace_slice == ALL_SECONDS else {**item, "pace_part": list(pace_slice)}


def share_of(item: Item, end: int) -> Share:
    """The inverse of `share_item`, of an item with its key. Raises KeyError, TypeError, ValueError."""
    shards, start, after = item["shards"], item["start"], item.get("after", "")
    if not isinstance(shards, str) or not isinstance(after, str) or type(start) is not int or start > end:
        raise TypeError(f"{str(shards)[:100]!r} from {start!r} to {end} after {after!r}"[:300])
    window = Window(start, end, float(item["decided_at"]))
    pace_slice = PaceSlice(*map(int, item.get("pace_part", ALL_SECONDS)))
    named = tuple(Shard(*keys.group_and_shard(text)) for text in shards.split("\n"))
    return Share(keys.key_of(item), window, named, after, pace_slice)


def _names(shards: Iterable[Shard]) -> str:
    return "\n".join(map(_name, shards))


def _name(shard: Shard) -> str:
    return keys.directory(shard.group, shard.shard)["sk"]


class PlanningQueue:
    """The queue from the tick to the planners."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, end: int, numbers: Sequence[int]) -> None:
        """Send these shares of the window that ends at `end`. Raises HandOverFailed."""
        self.send_works([PlanningWork(end=end, share=number) for number in numbers])

    def send_works(self, works: Sequence[PlanningWork]) -> None:
        """Send a message for each. Raises HandOverFailed."""
        for first in range(0, len(works), BATCH_SIZE):
            batch = works[first : first + BATCH_SIZE]
            response = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[{"Id": str(nth), "MessageBody": work.body} for nth, work in enumerate(batch)],
            )
            if failed := response.get("Failed"):
                raise HandOverFailed(f"SQS did not take {len(failed)} shares, first {failed[0]}")

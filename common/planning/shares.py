"""Shares: the due entries of a window, divided among planners if one process should not plan them all.

The tick records the shares, then marks which division of the window counts, and sends a message for each share. A
planner enqueues its share's executions and then deletes the record. The planner that finds no records left moves the
mark. If a message is lost, its record remains, and the next tick sends it again. A crash anywhere can only cause a
repetition, never a loss. A planner without time left records its progress, and sends the rest to another.
"""

from __future__ import annotations

import json
import secrets
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from common.errors import Minute8Error
from common.planning.directory import Shard
from common.planning.due_index import DueIndex, Mark
from common.planning.executions_queue import BATCH_SIZE, HandOverFailed
from common.planning.pace import WHOLE, Part
from common.planning.pace_shards import pace_of
from common.storage import keys
from common.storage.conflicts import ConditionFailed
from common.storage.table import Query, Table
from common.storage.wire import Expression, Item
from common.timing.groups import entry_weight
from common.timing.windows import MISSED_AFTER_S

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MESSAGE_VERSION = 1
# The names of the shards of one share. A DynamoDB item holds at most 400 KB.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
MAX_TEXT_BYTES = 300_000
# Reading an empty shard costs a planner about as much as reading this many entries.
_SHARD_WEIGHT = 8
# A share's number: its random division, and how many of its shares were recorded before.
_IN_A_DIVISION = 1_000_000


class UnreadableShare(Minute8Error):
    """A message that does not name a share. It belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Share:
    """One planner's part of a window, to be planned as the window was decided.

    `after` is the place in the first of its shards up to which another planner has handed it over. `part` says which
    seconds are its own, if it is a part of a pace.
    """

    key: keys.Key
    window: Mark
    shards: tuple[Shard, ...]
    after: str = ""
    part: Part = WHOLE


class Cut(NamedTuple):
    """The shards of one share, and which part of a pace they are."""

    shards: Sequence[Shard]
    part: Part = WHOLE


@dataclass(frozen=True, slots=True)
class ShareName:
    """What a message names: a share of the window that ends at `end`."""

    end: int
    number: int


def cut(shards: Iterable[Shard], window: Mark, entries_a_share: int) -> Iterator[Cut]:
    """Shares in the order of the shards, those of paces last, each pace in one share.

    Each is full by its planning cost, or by the bytes of its record. At most one share is held in memory, and the
    shards of paces. A shard that is too large for a share becomes a share of its own; a pace is divided into parts.
    """
    span_s = window.planning_until - max(window.planned_until, int(window.decided_at) - MISSED_AFTER_S)
    for share in _filled(gathered(shards), span_s, entries_a_share):
        if not pace_of(share[0].shard):
            yield Cut(share)
            continue
        pieces = list(_filled(([shard] for shard in share), span_s, entries_a_share))
        yield from (Cut(piece, Part(nth, len(pieces))) for nth, piece in enumerate(pieces))


def gathered(shards: Iterable[Shard]) -> Iterator[list[Shard]]:
    """What is planned together: each shard by itself; last the paces, each with all its shards."""
    paces: defaultdict[int, list[Shard]] = defaultdict(list)
    for shard in shards:
        if pace := pace_of(shard.shard):
            paces[pace].append(shard)
        else:
            yield [shard]
    yield from paces.values()


def _filled(units: Iterable[list[Shard]], span_s: int, entries_a_share: int) -> Iterator[list[Shard]]:
    share: list[Shard] = []
    weight = size = 0
    for unit in units:
        more = sum(shard.jobs * entry_weight(shard.group, span_s) + _SHARD_WEIGHT for shard in unit)
        if pace_of(unit[0].shard):  # what its pace took before is read, too
            more += len(unit) * _SHARD_WEIGHT
        bytes_more = sum(len(_name(shard).encode()) + 1 for shard in unit)
        if share and (weight + more > entries_a_share or size + bytes_more > MAX_TEXT_BYTES):
            yield share
            share, weight, size = [], 0, 0
        share += unit
        weight += more
        size += bytes_more
    if share:
        yield share


class Shares:
    """The records of unfinished shares, in the due table."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._index = DueIndex(table)

    def record(self, window: Mark, shares: Iterable[Cut]) -> Mark:
        """Record them all, unless another tick has divided or finished the window. Returns the stored mark.

        They count once the mark names their division. If this is interrupted before, `sweep` removes them.
        """
        division = 1 + secrets.randbelow(_IN_A_DIVISION)
        recorded = []
        for nth, share in enumerate(shares):
            key = keys.share(window.planning_until, division * _IN_A_DIVISION + nth)
            self._table.put({**key, **share_item(window, *share)})
            recorded.append(key)
        counts = Expression(
            "SET #divided_until = :end, #division = :division",
            {":end": window.planning_until, ":division": division},
        )
        undivided = Expression(
            "#planned_until = :start AND #planning_until = :end"
            " AND (attribute_not_exists(#divided_until) OR #divided_until < :end)",
            {":start": window.planned_until, ":end": window.planning_until},
        )
        try:
            self._table.update(keys.MARK, counts, undivided)
        except ConditionFailed:  # another tick was faster
            for key in recorded:
                self._table.delete(key)
        mark = self._index.mark()
        assert mark is not None
        return mark

    def left(self, window: Mark) -> list[int]:
        """The numbers of a divided window's shares that are not confirmed."""
        prefix = keys.share_prefix(window.planning_until)
        items = self._table.query(Query(keys.SHARES, sk_prefix=prefix, attributes=("sk",)))
        numbers = (keys.share_number(item["sk"]) for item in items)
        return [number for number in numbers if number // _IN_A_DIVISION == window.division]

    def load(self, end: int, number: int) -> Share | None:
        """A share; None if it is finished."""
        item = self._table.get(keys.share(end, number))
        return share_of(item, end) if item else None

    def advance(self, share: Share, left: Sequence[Shard], after: str) -> bool:
        """Record what is left of it, after the place `after`. False if another planner has it meanwhile."""
        change = Expression(
            "SET #shards = :shards, #after = :after, #tries = :none",
            {":shards": _names(left), ":after": after, ":none": 0},
        )
        try:
            self._table.update(share.key, change, Expression("attribute_exists(pk)", {}))
        except ConditionFailed:
            return False
        return True

    def confirm(self, share: Share) -> None:
        """Delete the share: its executions are enqueued."""
        self._table.delete(share.key)

    def finish_if_last(self, end: int) -> None:
        """Move the mark over a divided window that has no shares left."""
        # The mark first: when it says "divided", all shares are recorded, and none is added later.
        mark = self._index.mark()
        if mark and mark.is_divided and mark.planning_until == end and not self.left(mark):
            self._index.finish_planning(end)

    def sweep(self, planned_until: int) -> None:
        """Remove shares of windows that are planned: their tick recorded them too late."""
        between = keys.begins_between(0, planned_until)
        for item in self._table.query(Query(keys.SHARES, sk_between=between, attributes=("pk", "sk"))):
            self._table.delete(keys.key_of(item))


def share_item(window: Mark, shards: Sequence[Shard], part: Part = WHOLE) -> Item:
    """The attributes of a share's record."""
    item = {"start": window.planned_until, "decided_at": window.decided_at, "shards": _names(shards)}
    return item if part == WHOLE else {**item, "pace_part": list(part)}


def share_of(item: Item, end: int) -> Share:
    """The inverse, of an item with its key."""
    shards = tuple(Shard(*keys.group_and_shard(text)) for text in item["shards"].split("\n"))
    window = Mark(item["start"], end, item["decided_at"], end)
    part = Part(*map(int, item.get("pace_part", WHOLE)))
    return Share(keys.key_of(item), window, shards, item.get("after", ""), part)


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
        self.send_bodies([encode(end, number) for number in numbers])

    def send_bodies(self, bodies: Sequence[str]) -> None:
        """Send messages of `encode` and `encode_set_aside`. Raises HandOverFailed."""
        for first in range(0, len(bodies), BATCH_SIZE):
            batch = bodies[first : first + BATCH_SIZE]
            answer = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[{"Id": str(nth), "MessageBody": body} for nth, body in enumerate(batch)],
            )
            if failed := answer.get("Failed"):
                raise HandOverFailed(f"SQS did not take {len(failed)} shares, first {failed[0]}")


def encode(end: int, number: int) -> str:
    """The message that names a share."""
    return json.dumps({"v": MESSAGE_VERSION, "end": end, "share": number}, separators=(",", ":"))


def encode_set_aside(names: Sequence[str]) -> str:
    """The message that names what was set aside, by sort keys (common/planning/quarantine.py)."""
    return json.dumps({"v": MESSAGE_VERSION, "set_aside": list(names)}, separators=(",", ":"))


def decode(body: str) -> ShareName | list[str]:
    """The inverse of both. Raises UnreadableShare."""
    try:
        fields = json.loads(body)
        if fields["v"] != MESSAGE_VERSION:
            raise ValueError(f"version {fields['v']!r}, this code reads {MESSAGE_VERSION}")
        if "set_aside" in fields:
            return [str(name) for name in fields["set_aside"]]
        return ShareName(int(fields["end"]), int(fields["share"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableShare(f"not a share: {body[:200]!r} ({error!r})") from error

"""Shares: what is due in a window, divided among planner invocations where it is more than one should send.

The tick records all shares and "this window is divided" on the mark in one transaction, then sends a message for each.
A planner hands its share's executions over, then takes the record away; whoever finds none left moves the mark. So a
lost message leaves a record, which the next tick sends again, and a crash anywhere means sending twice, never losing.
"""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from common.errors import Minute8Error
from common.planning.due_index import DueIndex, Mark, Shard
from common.planning.executions_queue import BATCH_SIZE, HandOverFailed
from common.storage import keys
from common.storage.tables import ConditionFailed, Expression, Table, Transaction

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

MESSAGE_VERSION = 1
# A transaction takes 100 writes and 4 MB.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis.html
_MOST_SHARES = 90
_MOST_TEXT_BYTES = 3_000_000
# Asking for a shard costs a planner about as much as reading so many entries.
_SHARD_WEIGHT = 8


class UnreadableShare(Minute8Error):
    """A message that names no share. It belongs in the dead-letter queue."""


@dataclass(frozen=True, slots=True)
class Share:
    """One planner's part of a window, to be planned as the window was decided."""

    window: Mark
    number: int
    shards: tuple[Shard, ...]


def divide(shards: Sequence[Shard], entries_a_share: int) -> list[list[Shard]]:
    """Balanced shares: the heaviest shard first, each to the share that has least. One share if all fits into it."""
    wanted = math.ceil(sum(map(_weight, shards)) / entries_a_share)
    if wanted <= 1 or sum(len(shard.group) + 8 for shard in shards) > _MOST_TEXT_BYTES:
        return [list(shards)]
    lightest: list[tuple[int, int, list[Shard]]] = [(0, n, []) for n in range(min(wanted, _MOST_SHARES))]
    for shard in sorted(shards, key=_weight, reverse=True):
        weight, number, share = lightest[0]
        share.append(shard)
        heapq.heapreplace(lightest, (weight + _weight(shard), number, share))
    return [share for _, _, share in sorted(lightest) if share]


class Shares:
    """The records of shares that are not handed over yet; in the due table, beside the mark."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._index = DueIndex(table)

    def record(self, window: Mark, shares: Iterable[Sequence[Shard]]) -> Mark:
        """Record them all, unless another tick has divided or finished the window. Returns the mark as it is."""
        tx = Transaction(self._table.client)
        for number, shards in enumerate(shares):
            tx.put(
                self._table,
                {
                    **keys.share(window.planning_until, number),
                    "start": window.planned_until,
                    "decided_at": window.decided_at,
                    "shards": "\n".join(f"{shard.group}#{shard.shard}" for shard in shards),
                },
            )
        tx.update(
            self._table,
            keys.MARK,
            Expression("SET #divided_until = :end", {":end": window.planning_until}),
            Expression(
                "#planned_until = :start AND #planning_until = :end"
                " AND (attribute_not_exists(#divided_until) OR #divided_until < :end)",
                {":start": window.planned_until, ":end": window.planning_until},
            ),
        )
        with suppress(ConditionFailed):  # another tick was first
            tx.commit()
        mark = self._index.mark()
        assert mark is not None
        return mark

    def left(self, end: int) -> list[int]:
        """The numbers of a window's shares that are not confirmed."""
        items = self._table.query(keys.SHARES, sk_prefix=keys.share_prefix(end), attributes=("sk",))
        return [keys.share_number(item["sk"]) for item in items]

    def load(self, end: int, number: int) -> Share | None:
        """A share; None if it is handed over."""
        item = self._table.get(keys.share(end, number))
        if item is None:
            return None
        shards = tuple(Shard(*keys.group_and_shard(text)) for text in item["shards"].split("\n"))
        return Share(Mark(item["start"], end, item["decided_at"], end), number, shards)

    def confirm(self, share: Share) -> None:
        """Its executions are handed over."""
        self._table.delete(keys.share(share.window.planning_until, share.number))

    def finish_if_last(self, end: int) -> None:
        """Move the mark over a divided window of which no share is left."""
        # The mark first: once it says "divided", all shares are recorded, and none comes back.
        mark = self._index.mark()
        if mark and mark.is_divided and mark.planning_until == end and not self.left(end):
            self._index.finish_planning(end)


class PlanningQueue:
    """The queue from the tick to the planners."""

    def __init__(self, client: SQSClient, url: str) -> None:
        self._client = client
        self._url = url

    def send(self, end: int, numbers: Sequence[int]) -> None:
        """Hand over these shares of the window that ends at `end`. Raises HandOverFailed."""
        for first in range(0, len(numbers), BATCH_SIZE):
            batch = numbers[first : first + BATCH_SIZE]
            answer = self._client.send_message_batch(
                QueueUrl=self._url,
                Entries=[{"Id": str(number), "MessageBody": encode(end, number)} for number in batch],
            )
            if failed := answer.get("Failed"):
                raise HandOverFailed(f"SQS did not take {len(failed)} shares of {end}, first {failed[0]}")


def encode(end: int, number: int) -> str:
    """The message that names a share."""
    return json.dumps({"v": MESSAGE_VERSION, "end": end, "share": number}, separators=(",", ":"))


def decode(body: str) -> tuple[int, int]:
    """The inverse. Raises UnreadableShare."""
    try:
        fields = json.loads(body)
        if fields["v"] != MESSAGE_VERSION:
            raise ValueError(f"version {fields['v']!r}, this code reads {MESSAGE_VERSION}")
        return int(fields["end"]), int(fields["share"])
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableShare(f"not a share: {body[:200]!r} ({error!r})") from error


def _weight(shard: Shard) -> int:
    return shard.jobs + _SHARD_WEIGHT

"""The few DynamoDB operations that Minute8 uses. Items are plain dicts; other modules rarely see the wire format."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botocore.exceptions import ClientError

from common.config import Config
from common.errors import Busy, Minute8Error
from common.storage import aws
from common.storage.conflicts import (
    MAX_TRIES,
    ConditionFailed,
    busy,
    refused_write,
    retry_on_conflict,
    wait_s,
)
from common.storage.expressions import ABSENT, Attribute, Condition, unchanged
from common.storage.keys import Index, Key
from common.storage.wire import (
    Expression,
    Item,
    expression_arguments,
    from_wire,
    item_to_wire,
    to_wire,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef

# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html
_BATCH_GET = 100
# Pauses between requests for items that DynamoDB left out. botocore retries failed requests itself.
_PAUSES_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchWriteItem.html
_WRITES_A_REQUEST = 25
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
INSERTS_A_REQUEST = 25

# The waits add up to half a second on average.
MAX_WRITE_TRIES = 6
# The attribute that each `swap` of an item writes anew.
ETAG: Final = "etag"
# The time to live. DynamoDB removes an expired item up to days later, but never one that is five years past.
_EXPIRY: Final = "expires_at"
_TOO_LONG_AGO_S: Final = 5 * 365 * 86_400

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """All items of a partition of a table or an index, in sort-key order, at most `limit`.

    Of an index, only those whose number is at least `since`. A request reads `page` items; without it, as many as fit.
    With `attributes` only these are returned, also single elements as in `attempts[0]`. This costs the same read
    units, but less time to transfer and decode.
    """

    pk: str
    index: Index | None = None
    sk_prefix: str = ""
    sk_between: tuple[str, str] | None = None
    after: Mapping[str, Any] | None = None
    newest_first: bool = False
    limit: int | None = None
    page: int | None = None
    consistent: bool = True
    where: Expression | None = None
    attributes: Sequence[str] = ()
    since: float | None = None

    def request(self, table: str) -> QueryInputTypeDef:
        """The request for the first page."""
        condition, values = self._key_condition()
        request: QueryInputTypeDef = {
            "TableName": table,
            "KeyConditionExpression": condition,
            "ConsistentRead": self.consistent and self.index is None,
            "ScanIndexForward": not self.newest_first,
        }
        if self.index:
            request["IndexName"] = self.index.name
        if self.page:
            request["Limit"] = self.page
        names: dict[str, str] = {}
        if self.attributes:
            request["ProjectionExpression"], names = _projection(self.attributes)
        if self.where is not None:
            request["FilterExpression"] = self.where.expression
            values |= to_wire(self.where.values)
            names |= self.where.names()
        if names:
            request["ExpressionAttributeNames"] = names
        request["ExpressionAttributeValues"] = values
        if self.after:
            request["ExclusiveStartKey"] = to_wire(self.after)
        return request

    def from_start(self) -> Query:
        """The same items, with a range that begins at `after`: DynamoDB refuses a start outside of its range."""
        if not (self.after and self.sk_between):
            return self
        (first, last), start = self.sk_between, self.after["sk"]
        between = (first, min(last, start)) if self.newest_first else (max(first, start), last)
        return replace(self, sk_between=between, after=self.after if start in between else None)

    def _key_condition(self) -> tuple[str, Any]:
        """The condition, and its values in DynamoDB's format: those of a key are texts, and of an index one number."""
        terms = [f"{self.index.pk if self.index else 'pk'} = :pk"]
        values: dict[str, Any] = {":pk": {"S": self.pk}}
        if self.sk_prefix:
            terms.append("begins_with(sk, :prefix)")
            values[":prefix"] = {"S": self.sk_prefix}
        if self.sk_between:
            terms.append("sk BETWEEN :first AND :last")
            values |= {":first": {"S": self.sk_between[0]}, ":last": {"S": self.sk_between[1]}}
        if self.index and self.since is not None:
            terms.append(f"{self.index.sk} >= :since")
            values |= to_wire({":since": self.since})
        return " AND ".join(terms), values


class Table:
    """One table. Reads are strongly consistent, except reads of an index. They return no item that has expired; a
    refused write does, so that nothing is done again as long as its record is stored.

    While a transaction locks an item, DynamoDB refuses all other writes of it. botocore does not retry those, so each
    write here does. `sleep` waits between tries, also of what DynamoDB left out of a batch.
    """

    def __init__(
        self,
        client: DynamoDBClient,
        name: str,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.client = client
        self.name = name
        self._sleep = sleep
        self._now = now

    def beside(self, kind: str) -> Table:
        """Another table of the same deployment: the last part of the name differs, as in `minute8-prod-tenants`."""
        return Table(self.client, f"{self.name.rpartition('-')[0]}-{kind}", self._sleep, self._now)

    def metered(self) -> Table:
        """The same table; the present meter counts what its requests cost."""
        from common.storage.metering import MeteredClient  # only the API meters

        client: Any = MeteredClient(self.client)
        return Table(client, self.name, self._sleep, self._now)

    def with_expired(self) -> Table:
        """The same table; its reads return also what has expired and is not removed yet."""
        return Table(self.client, self.name, self._sleep, lambda: 0.0)

    @property
    def absent(self) -> Condition:
        """The condition that there is no item, or one that has expired."""
        return ABSENT | (Attribute(_EXPIRY) <= self._now())

    def get(self, key: Key, *, consistent: bool = True) -> Item | None:
        """The item; None if it does not exist."""
        return self._living(self._stored(key, consistent=consistent))

    def _stored(self, key: Key, *, consistent: bool = True) -> Item | None:
        """The item, also one that has expired."""
        answer = self.client.get_item(TableName=self.name, Key=to_wire(key), ConsistentRead=consistent)
        return from_wire(answer["Item"]) if "Item" in answer else None

    def _living(self, item: Item | None) -> Item | None:
        return next(self._without_expired([item]), None) if item else None

    def _without_expired(self, items: Iterable[Item]) -> Iterator[Item]:
        now = self._now()
        for item in items:
            expires_at: Any = item.get(_EXPIRY)
            if type(expires_at) not in (int, float) or not now - _TOO_LONG_AGO_S < expires_at <= now:
                yield item

    def get_many(
        self,
        keys: Sequence[Key],
        *,
        consistent: bool = True,
        attributes: Sequence[str] = (),
    ) -> Iterator[Item]:
        """The items that exist, in any order, or only some `attributes` of them.

        A page holds at most 16 MB, and 1 MB of a partition; items that were left out are requested again.

        Raises:
            Busy: DynamoDB returned none of the requested items, several times. The pauses of a hundred items add up
                to at most three seconds.
        """
        for remaining in self._batch_gets(keys, consistent, attributes):
            pauses = iter(_PAUSES_S)
            while remaining:
                answer = self.client.batch_get_item(RequestItems=remaining)
                items = answer["Responses"].get(self.name, [])
                yield from self._without_expired(map(from_wire, items))
                remaining = answer.get("UnprocessedKeys")
                if remaining and not items:
                    if (pause_s := next(pauses, None)) is None:
                        raise Busy(
                            f"{len(remaining[self.name]['Keys'])} items could not be read now; try again later"
                        )
                    self._sleep(pause_s)

    def get_some(self, keys: Sequence[Key], *, consistent: bool = True) -> list[Item]:
        """The items that one request for each hundred keys returns.

        DynamoDB leaves out items of a throttled partition, and what exceeds 1 MB of a partition or 16 MB. Nothing is
        requested again: nobody waits for the others. Raises what the request raises, without another try.
        """
        items: list[Item] = []
        for request in self._batch_gets(keys, consistent):
            for wire in self._once.batch_get_item(RequestItems=request)["Responses"].get(self.name, []):
                items.append(from_wire(wire))
        return list(self._without_expired(items))

    def _batch_gets(
        self, keys: Sequence[Key], consistent: bool, attributes: Sequence[str] = ()
    ) -> Iterator[Any]:
        for start in range(0, len(keys), _BATCH_GET):
            wire_keys = [to_wire(key) for key in keys[start : start + _BATCH_GET]]
            request: dict[str, Any] = {"Keys": wire_keys, "ConsistentRead": consistent}
            if attributes:
                request["ProjectionExpression"], request["ExpressionAttributeNames"] = _projection(attributes)
            yield {self.name: request}

    @property
    def _once(self) -> Any:
        """The client for requests that are made only once, for several tenants: no error makes all of them wait."""
        return getattr(self.client, "once", self.client)

    def put(self, item: Mapping[str, Any], condition: Expression | None = None) -> None:
        """Write a whole item. Raises ConditionFailed, with the existing item; Busy; ItemTooLarge."""
        request = {"TableName": self.name, "Item": item_to_wire(item), **expression_arguments(condition)}
        self._write(self.client.put_item, request)

    def update(self, key: Key, change: Expression, condition: Expression | None = None) -> Item:
        """Apply an update expression, return the new item.

        Raises ConditionFailed, with the existing item; Busy; ItemTooLarge.
        """
        return from_wire(self.apply(key, change, condition))

    def apply(self, key: Key, change: Expression, condition: Expression | None = None) -> Mapping[str, Any]:
        """As `update`; the new item is in DynamoDB's format, which costs no time to read if nobody needs it."""
        request = {
            "TableName": self.name,
            "Key": to_wire(key),
            "ReturnValues": "ALL_NEW",
            **expression_arguments(condition, change),
        }
        attributes: Mapping[str, Any] = self._write(self.client.update_item, request)["Attributes"]
        return attributes

    def delete(self, key: Key, condition: Expression | None = None) -> None:
        """Delete the item if it exists. Raises ConditionFailed, Busy."""
        request = {"TableName": self.name, "Key": to_wire(key), **expression_arguments(condition)}
        self._write(self.client.delete_item, request)

    def create(self, item: Mapping[str, Any]) -> Item | None:
        """Write an item whose key is not used. Returns the existing item, which stays; None: written. Raises Busy."""
        try:
            self.put(item, self.absent)
        except ConditionFailed as refused:
            return refused.existing
        return None

    def put_if(self, item: Mapping[str, Any], condition: Expression) -> bool:
        """Write an item and an `etag` if the condition holds. Returns whether it did. Raises Busy, ItemTooLarge."""
        etag = secrets.token_hex(8)
        try:
            self.put({**item, ETAG: etag}, condition)
        except ConditionFailed as refused:
            return refused.is_of(ETAG, etag)
        return True

    def update_if(self, key: Key, change: Expression, condition: Expression) -> Item | None:
        """Apply an update if the condition holds. Returns the new item; None: it did not hold. Raises as `put_if`."""
        try:
            return self.update(key, change, condition)
        except ConditionFailed:
            return None

    def update_or_read(self, key: Key, change: Expression, condition: Expression) -> Item | None:
        """As `update_if`, but where the condition did not hold, the existing item; None: there is none."""
        try:
            return self.update(key, change, condition)
        except ConditionFailed as refused:
            return refused.existing

    def delete_if(self, key: Key, condition: Expression) -> bool:
        """Delete the item if the condition holds. Returns whether it did. Raises Busy."""
        try:
            self.delete(key, condition)
        except ConditionFailed:
            return False
        return True

    def swap(
        self,
        key: Key,
        change: Callable[[Item | None], tuple[Item | None, T]],
        known: Item | None = None,
        *,
        read: bool = False,
    ) -> tuple[Item | None, T]:
        """Replace an item with what `change` makes of it. Returns the item that is stored now, and the change's result.

        `change` is pure: it gets the item, None if there is none, and returns the new one, None to delete it, and a
        result. It begins with `known`, without a read, or with `read` by reading. If another writer was faster, it
        is called again with what is stored. Neither an unchanged item nor a refusal that it raises counts before the
        item was read: then it is called again, too. An unchanged item is not written. The new item
        needs no key. The attribute `etag` changes with each write; all writers of the item use `swap`.

        Raises Busy, ItemTooLarge, and what `change` raises.
        """
        item, is_fresh = (self._stored(key), True) if read else (known, False)
        for failed in range(MAX_TRIES + 1):
            if failed > 1:  # an item that was not known or has just been refused needs no wait
                self._sleep(wait_s(failed - 1))
            try:
                new, result = change(present := self._living(item))
            except Minute8Error:
                if is_fresh:
                    raise
                new = present
            is_same = _content(new) == _content(present)
            if is_same and is_fresh:
                return present, result
            if is_same:
                item, is_fresh = self._stored(key), True
                continue
            etag = secrets.token_hex(8)
            stored = None if new is None else {**new, **key, ETAG: etag}
            try:
                if stored is None:
                    self.delete(key, unchanged(item, ETAG))
                else:
                    self.put(stored, unchanged(item, ETAG))
            except ConditionFailed as refused:
                item, is_fresh = refused.existing, True
                if not refused.is_of(ETAG, etag):
                    continue
            return stored, result
        raise busy(f"{key['pk']} {key['sk']}")

    def _write(self, call: Callable[..., Any], request: Mapping[str, Any]) -> Any:
        def attempt() -> Any:
            try:
                return call(**request)
            except ClientError as error:
                if (refused := refused_write(error)) is None:
                    raise
                raise refused from error

        return retry_on_conflict(attempt, "the item", tries=MAX_WRITE_TRIES, sleep=self._sleep)

    def put_many(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Write whole items, in any order, not atomically; no two have the same key. Raises Busy, ItemTooLarge."""
        for first in range(0, len(items), _WRITES_A_REQUEST):
            requests = [
                {"PutRequest": {"Item": item_to_wire(item)}}
                for item in items[first : first + _WRITES_A_REQUEST]
            ]
            remaining: Any = {self.name: requests}
            for pause_s in (*_PAUSES_S, None):
                remaining = self.client.batch_write_item(RequestItems=remaining).get("UnprocessedItems")
                if not remaining:
                    break
                if pause_s is None:
                    raise Busy(f"{len(remaining[self.name])} items could not be written now; try again later")
                self._sleep(pause_s)

    def delete_many(self, keys: Sequence[Key]) -> int:
        """Delete the existing items, in any order, not atomically. Returns how many: fewer if DynamoDB throttles."""
        deleted = 0
        for first in range(0, len(keys), _WRITES_A_REQUEST):
            batch = keys[first : first + _WRITES_A_REQUEST]
            request: Any = {self.name: [{"DeleteRequest": {"Key": to_wire(key)}} for key in batch]}
            unprocessed = self.client.batch_write_item(RequestItems=request).get("UnprocessedItems", {})
            deleted += len(batch) - len(unprocessed.get(self.name, ()))
        return deleted

    def insert_many(self, items: Sequence[Mapping[str, Any]]) -> list[bool]:
        """Insert items of different keys, each only if it does not exist, for the price of single writes.

        Returns for each whether it is certain that it was inserted now. The caller writes the others one by one: that
        also returns existing items, and tries again. Raises ItemTooLarge, and what a request raises, without another
        try.
        """
        inserted: list[bool] = []
        for first in range(0, len(items), INSERTS_A_REQUEST):
            batch = [item_to_wire(item) for item in items[first : first + INSERTS_A_REQUEST]]
            statements: Any = [
                {"Statement": _insertion(self.name, tuple(item)), "Parameters": list(item.values())}
                for item in batch
            ]
            answer = self._once.batch_execute_statement(Statements=statements)
            inserted += ["Error" not in result for result in answer["Responses"]]
        return inserted

    def query(self, query: Query) -> Iterator[Item]:
        """The items of a query, which are read while the caller consumes them."""
        query = query.from_start()
        if query.sk_between:
            first, last = query.sk_between
            if first > last or (query.after and first == last):
                return iter(())  # DynamoDB refuses a range that is empty
        return self._pages(query.request(self.name), query.limit, query.page)

    def _pages(self, request: QueryInputTypeDef, limit: int | None, page: int | None) -> Iterator[Item]:
        remaining = limit
        while True:
            if remaining is not None and "FilterExpression" not in request:
                request["Limit"] = min(remaining, page or remaining)
            answer = self.client.query(**request)
            living = self._without_expired(map(from_wire, answer["Items"]))
            if remaining is None:
                yield from living
            else:
                for item in islice(living, remaining):
                    yield item
                    remaining -= 1
                if remaining == 0:
                    return
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]


def _projection(attributes: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The expression and the names. moto knows no placeholder before an index, so no list is a reserved word."""
    paths = [path if "[" in path else f"#{path}" for path in dict.fromkeys((*attributes, _EXPIRY))]
    return ", ".join(paths), {path: path[1:] for path in paths if path[0] == "#"}


@lru_cache(maxsize=64)
def _insertion(table: str, names: tuple[str, ...]) -> str:
    """PartiQL: fails if the item exists."""
    fields = ", ".join(f"'{name}': ?" for name in names)
    return f'INSERT INTO "{table}" VALUE {{{fields}}}'


def _content(item: Mapping[str, Any] | None) -> Item | None:
    """An item without its key and without what `swap` adds."""
    return (
        None
        if item is None
        else {name: value for name, value in item.items() if name not in ("pk", "sk", ETAG)}
    )


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one deployment. `named` returns one by its short name; it fails if that table is not configured."""

    named: Callable[[str], Table]

    @property
    def jobs(self) -> Table:
        return self.named("jobs")

    @property
    def due(self) -> Table:
        return self.named("due")

    @property
    def tenants(self) -> Table:
        return self.named("tenants")

    @property
    def runs(self) -> Table:
        return self.named("runs")

    def metered(self) -> Tables:
        """The same tables; the present meter counts what their requests cost."""
        return Tables(lambda name: self.named(name).metered())

    @classmethod
    def of(cls, settings: Config, client: Callable[[], DynamoDBClient] | None = None) -> Tables:
        """The tables of a deployment. Reading one raises MissingSetting if its variable is not set."""
        return cls(lambda name: Table((client or aws.dynamodb)(), settings.required(f"{name}_table")))

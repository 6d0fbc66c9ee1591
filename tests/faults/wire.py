"""The wire between Minute8 and AWS: it counts calls, and injects a fault at the n-th."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from typing import Any

from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from common.runs.outcome import Outcome
from tests.worlds import Killed

_ENDPOINT = "https://aws.test"
_ITEM_WRITES = ("put_item", "update_item", "delete_item", "transact_write_items")


class Fault(StrEnum):
    """The faults that one call may meet."""

    FAILED = "failed before it was done"
    LOST = "done, and its answer lost"
    THROTTLED = "throttled"
    CONFLICTED = "refused, since another transaction held the item"
    TIMED_OUT = "timed out before it was done"
    REPEATED = "done, its answer lost, and sent again by botocore"
    KILLED_BEFORE = "process killed before it"
    KILLED_AFTER = "process killed after it"


# A table, a partition and a sort key (None: all of them), and whether it is written.
Touch = tuple[str | None, str | None, str | None, bool]
Touched = set[Touch]
# Queues and targets: the order of their calls always matters.
ELSEWHERE: Touched = {("elsewhere", None, None, True)}
_EVERYTHING: Touched = {(None, None, None, True)}


def commute(step: Touched, other: Touched) -> bool:
    """Whether two steps lead to the same in both orders: they share no item, or both only read it."""
    return not any(_same(a, b) and (a[3] or b[3]) for a in step for b in other)


def _same(a: Touch, b: Touch) -> bool:
    return all(x == y or None in (x, y) for x, y in zip(a[:3], b[:3], strict=True))


KILLS = (Fault.KILLED_BEFORE, Fault.KILLED_AFTER)


class Wire:
    """All calls of one world. `arm` it, and the n-th call from then on meets its fault."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.hit = ""
        self.turn: Callable[[str, Touched], None] = lambda name, touched: None
        self._fault: Fault | None = None
        self._nth = 0
        self._only = ""
        self._counts = False
        self._deaths: dict[str, tuple[str, int]] = {}
        self._lock = threading.Lock()

    def arm(self, nth: int, fault: Fault | None, only: str = "") -> None:
        """From now on count the calls, those named `only` or all; the `nth`, from 1, meets the fault."""
        self.calls, self.hit, self._nth, self._fault, self._only = [], "", nth, fault, only
        self._counts = True

    def disarm(self) -> None:
        self._fault, self._counts = None, False

    def kill_in(self, deaths: Mapping[str, tuple[str, int]]) -> None:
        """Kill each of these threads, by name, after its n-th call of that name; an empty name counts all calls."""
        self._deaths = dict(deaths)

    def _dies_now(self, name: str) -> bool:
        thread = threading.current_thread().name
        call, calls_to_death = self._deaths.get(thread, ("", 0))
        if not calls_to_death or call not in ("", name):
            return False
        self._deaths[thread] = (call, calls_to_death - 1)
        return calls_to_death == 1

    def next_fault(self, name: str) -> Fault | None:
        with self._lock:
            if not self._counts or self._only not in ("", name):
                return None
            self.calls.append(name)
            if self._fault is None or len(self.calls) != self._nth:
                return None
            self.hit = name
            fault, self._fault = self._fault, None
            return fault

    def call(
        self,
        name: str,
        do: Callable[[], Any],
        throttled: Callable[[], Exception],
        about: str = "",
        conflicted: Callable[[], Exception] | None = None,
        touched: Touched = ELSEWHERE,
    ) -> Any:
        """One call of an AWS client; `about` says what it touches. A call without `conflicted` writes no item."""
        self.turn(f"{name} {about}".rstrip(), touched)
        fault = Fault.KILLED_AFTER if self._dies_now(name) else self.next_fault(name)
        if fault is None:
            return do()
        if fault is Fault.CONFLICTED:
            if conflicted:
                raise conflicted()
            return do()
        if fault is Fault.KILLED_BEFORE:
            raise Killed(name)
        if fault is Fault.FAILED:
            raise refusal("InternalServerError", name)
        if fault is Fault.THROTTLED:
            raise throttled()
        if fault is Fault.TIMED_OUT:
            raise ReadTimeoutError(endpoint_url=_ENDPOINT)
        answer = do()
        if fault is Fault.KILLED_AFTER:
            raise Killed(name)
        if fault is Fault.LOST:
            raise ConnectionClosedError(endpoint_url=_ENDPOINT)
        # botocore adds a token to a transaction, by which DynamoDB recognises the repetition.
        return answer if name == "transact_write_items" else do()

    def target(self, do: Callable[[], Outcome]) -> Outcome:
        """One call of a target. Its kind turns every error into an outcome, and never calls twice."""
        self.turn("target", ELSEWHERE)
        fault = self.next_fault("target")
        if fault is Fault.KILLED_BEFORE:
            raise Killed("target")
        if fault in (Fault.FAILED, Fault.THROTTLED, Fault.TIMED_OUT):
            return Outcome(ok=False, error_type=fault.name)
        outcome = do()
        if fault is Fault.KILLED_AFTER:
            raise Killed("target")
        return Outcome(ok=False, error_type="LOST") if fault is Fault.LOST else outcome


def refusal(code: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": "injected"}}, operation)


class WiredDynamoDB:
    """A DynamoDB client whose data calls go through the wire; calls that create tables do not."""

    def __init__(self, client: Any, wire: Wire) -> None:
        self._client = client
        self._wire = wire

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._client, name)
        if name in ("exceptions", "meta", "create_table", "scan"):
            return real

        def wired(**request: Any) -> Any:
            throttled = partial(
                self._refused, name, "ProvisionedThroughputExceededException", "ThrottlingError"
            )
            conflicted = partial(self._refused, name, "TransactionConflictException", "TransactionConflict")
            return self._wire.call(
                name,
                partial(real, **request),
                throttled,
                _about(request),
                conflicted if name in _ITEM_WRITES else None,
                _touched(name, request),
            )

        return wired

    def _refused(self, operation: str, code: str, reason: str) -> Exception:
        """The refusal in the form of a single call, or of a transaction's first item."""
        if operation != "transact_write_items":
            return refusal(code, operation)
        response: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": "injected"},
            "CancellationReasons": [{"Code": reason}, {"Code": "None"}],
        }
        error: Exception = self._client.exceptions.TransactionCanceledException(response, operation)
        return error


def _about(request: Mapping[str, Any]) -> str:
    """The kind of item that a request touches: PROGRESS, PENDING, GROUP…"""
    key = request.get("Key", {}).get("pk") or request.get("ExpressionAttributeValues", {}).get(":pk", {})
    return str(key.get("S", "")).partition("#")[0]


def _touched(operation: str, request: Mapping[str, Any]) -> Touched:
    """The items that a request reads or writes. A query depends on its whole partition."""
    writes = operation not in ("get_item", "batch_get_item", "query")
    if "TransactItems" in request:
        parts = [part for item in request["TransactItems"] for part in item.values()]
        return {_item(part["TableName"], part.get("Key") or part["Item"], True) for part in parts}
    if operation == "query":
        partition = request["ExpressionAttributeValues"][":pk"]["S"]
        return {(request["TableName"], None if "IndexName" in request else partition, None, False)}
    if operation == "batch_get_item":
        read = [(table, key) for table, part in request["RequestItems"].items() for key in part["Keys"]]
        return {_item(table, key, False) for table, key in read}
    if operation == "batch_write_item":
        tables = request["RequestItems"].items()
        written = [(table, next(iter(part.values()))) for table, parts in tables for part in parts]
        return {_item(table, part.get("Key") or part["Item"], True) for table, part in written}
    if "TableName" in request and ("Key" in request or "Item" in request):
        return {_item(request["TableName"], request.get("Key") or request["Item"], writes)}
    return _EVERYTHING


def _item(table: str, item: Mapping[str, Any], writes: bool) -> Touch:
    return table, item["pk"]["S"], item["sk"]["S"], writes


def wired_queue(wire: Wire, send: Callable[..., Any]) -> Callable[..., Any]:
    """SQS's SendMessageBatch through the wire."""

    def send_message_batch(**request: Any) -> Any:
        return wire.call(
            "send_message_batch",
            partial(send, **request),
            lambda: refusal("RequestThrottled", "SendMessageBatch"),
        )

    return send_message_batch


def wired_target(wire: Wire, call: Callable[..., Outcome]) -> Callable[..., Outcome]:
    """A target through the wire."""

    def wired(settings: Mapping[str, Any], event: Mapping[str, Any], timeout_s: float) -> Outcome:
        return wire.target(lambda: call(settings, event, timeout_s))

    return wired

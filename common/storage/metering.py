"""What the work for one request costs: the units that DynamoDB reports, and processor time.

Only the API meters. Without a meter a client's requests are unchanged.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from botocore.exceptions import ClientError

from common.errors import Busy

_Argument = TypeVar("_Argument")
_Result = TypeVar("_Result")

_READS: Final = frozenset({"get_item", "batch_get_item", "query"})
_WRITES: Final = frozenset(
    {
        "put_item",
        "update_item",
        "delete_item",
        "batch_write_item",
        "batch_execute_statement",
        "transact_write_items",
    }
)


@dataclass(slots=True)
class Meter:
    """What one request has cost so far. `thread_s` tells the processor time of the calling thread.

    A refused write costs units as well, which DynamoDB does not report.
    """

    thread_s: Callable[[], float]
    read_units: float = 0
    write_units: float = 0
    processor_s: float = 0
    # As how many requests it has been counted, and whose: the tenant and its requests per minute.
    counted: int = 0
    payer: tuple[str, int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, *, read_units: float = 0, write_units: float = 0, processor_s: float = 0) -> None:
        """Add a part, from any thread."""
        with self._lock:
            self.read_units += read_units
            self.write_units += write_units
            self.processor_s += processor_s


_present: ContextVar[Meter | None] = ContextVar("_present", default=None)


def present_meter() -> Meter | None:
    """The meter of the request that the calling thread works for."""
    return _present.get()


@contextmanager
def metered(meter: Meter | None) -> Iterator[None]:
    """Count on `meter` what this thread does meanwhile."""
    if meter is None:
        yield
        return
    token = _present.set(meter)
    began_s = meter.thread_s()
    try:
        yield
    finally:
        meter.add(processor_s=meter.thread_s() - began_s)
        _present.reset(token)


def in_threads(
    function: Callable[[_Argument], _Result], arguments: Sequence[_Argument], threads: int
) -> list[_Result]:
    """What `function` returns for each argument, called in up to so many threads, for the same request."""
    return list(ahead(function, arguments, min(threads, len(arguments)) or 1))


def ahead(
    function: Callable[[_Argument], _Result], arguments: Iterable[_Argument], threads: int
) -> Iterator[_Result]:
    """The same in the order of the arguments, of which it takes twice as many as threads before the caller's."""
    meter = _present.get()

    def for_request(argument: _Argument) -> _Result:
        with metered(meter):
            return function(argument)

    called: deque[Future[_Result]] = deque()
    pool = ThreadPoolExecutor(threads)
    try:
        for argument in arguments:
            called.append(pool.submit(for_request, argument))
            if len(called) > 2 * threads:
                yield called.popleft().result()
        yield from (call.result() for call in called)
    finally:
        pool.shutdown(cancel_futures=True)


# Codes of a partition, table or account that takes no more at the moment, after botocore's own tries.
_THROTTLED: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")


class MeteredClient:
    """A DynamoDB client that counts on the present meter what its requests cost.

    A request that DynamoDB throttles raises Busy: its client may send it again.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._client, name)
        if name not in _READS and name not in _WRITES:
            return call

        def counted(**request: Any) -> Any:
            meter = _present.get()
            try:
                answer = call(**request, **({"ReturnConsumedCapacity": "TOTAL"} if meter else {}))
            except ClientError as error:
                if error.response["Error"]["Code"] not in _THROTTLED:
                    raise
                raise Busy("the tables take no more of this data at the moment; try again later") from error
            if meter:
                units = _units(answer.get("ConsumedCapacity") or ())
                meter.add(**{"read_units" if name in _READS else "write_units": units})
            return answer

        return counted


def _units(consumed: Any) -> float:
    """The units in an answer, which names one table or a list of them."""
    tables: Iterable[Any] = [consumed] if isinstance(consumed, dict) else consumed
    return sum(float(table.get("CapacityUnits", 0)) for table in tables)

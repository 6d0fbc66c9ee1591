"""Tables in memory in a process of their own: what a real table keeps is no memory of a function's that is measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from multiprocessing.managers import BaseManager
from typing import Any

from botocore.exceptions import ClientError

from tests.simulation.memory_dynamodb import MemoryDynamoDB


class _Served:
    """The tables, in their process."""

    def __init__(self) -> None:
        self._tables = MemoryDynamoDB()

    def call(self, name: str, arguments: Any, request: Any) -> tuple[Any, Any, str]:
        try:
            return getattr(self._tables, name)(*arguments, **request), None, ""
        except ClientError as error:
            return None, error.response, error.operation_name

    def forget(self) -> None:
        """Remove what only grows: the audit and the runs."""
        self._tables.tables["test-runs"].clear()
        for partition in self._tables.tables["test-tenants"].values():
            for key in [key for key in partition.items if key.startswith("AUDIT#")]:
                partition.delete(key)


class _Process(BaseManager):
    pass


_Process.register("served", _Served)


class FarTables:
    """A client of DynamoDB."""

    exceptions = MemoryDynamoDB.exceptions

    def __init__(self, served: Any) -> None:
        self.served = served
        self.forget = served.forget

    def __getattr__(self, name: str) -> Any:
        if not hasattr(MemoryDynamoDB, name):
            raise AttributeError(name)
        return partial(self._call, name)

    def _call(self, name: str, /, *arguments: Any, **request: Any) -> Any:
        answer, response, operation = self.served.call(name, arguments, request)
        if response is None:
            return answer
        raise getattr(self.exceptions, response["Error"]["Code"])(response, operation)


@contextmanager
def far_tables() -> Iterator[FarTables]:
    """Empty tables, until the block ends."""
    with _Process() as process:
        yield FarTables(process.served())  # type: ignore[attr-defined]

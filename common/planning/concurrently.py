"""Runs the same function for many items: few in sequence, more in several threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

T = TypeVar("T")

_MAX_SEQUENTIAL: Final = 10
_THREADS: Final = 16


def for_each(items: Sequence[T], do: Callable[[T], object]) -> None:
    """Raises the first error after all items were tried."""
    if len(items) <= _MAX_SEQUENTIAL:
        for item in items:
            do(item)
        return
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="write") as pool:
        futures = [pool.submit(do, item) for item in items]
    for future in futures:
        future.result()

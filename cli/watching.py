"""Runs as they happen: each run is shown when it is first seen, and again when its status changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

from minute8_client import Client, Run

_PAGE: Final = 50
_FINAL: Final = frozenset({"succeeded", "failed", "skipped", "dispatched"})


def watched(client: Client, job_id: str, rounds: Iterable[object], wait: Callable[[], None]) -> Iterator[Run]:
    """The changes, oldest first: once per round, with `wait` in between. Runs that had ended before are left out."""
    known = {run["execution_id"]: run["status"] for run in _newest(client, job_id) if run["status"] in _FINAL}
    for n, _ in enumerate(rounds):
        if n:
            wait()
        for run in reversed(_newest(client, job_id)):
            if known.get(run["execution_id"]) != run["status"]:
                known[run["execution_id"]] = run["status"]
                yield run


def _newest(client: Client, job_id: str) -> list[Run]:
    return list(islice(client.runs(job_id), _PAGE))

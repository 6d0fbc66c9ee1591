"""What chaos kills or stops: worker processes of functions, and the whole embedded AWS."""

from __future__ import annotations

import os
import random
import signal
from contextlib import suppress
from pathlib import Path

from scripts.embedded import Embedded

_NAME = b"AWS_LAMBDA_FUNCTION_NAME="


def workers(embedded: Embedded) -> dict[int, str]:
    """The Lambda workers of this instance alone: process id to function name."""
    processes: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to another user
            environment = (entry / "environ").read_bytes().split(b"\0")
            names = [line.removeprefix(_NAME) for line in environment if line.startswith(_NAME)]
            if names and any(embedded.endpoint_url.encode() in line for line in environment):
                processes[int(entry.name)] = names[0].decode()
    return processes


def strike(
    embedded: Embedded, rng: random.Random, signal_number: int, executors_share: float = 0.7
) -> tuple[int, str]:
    """Send one worker a signal, mostly an executor's; its process and function, (0, "") if there was none."""
    alive = workers(embedded)
    executors = sorted(pid for pid, name in alive.items() if name.endswith("-executor"))
    rest = sorted(set(alive) - set(executors))
    first, second = (executors, rest) if rng.random() < executors_share else (rest, executors)
    candidates = first or second
    if not candidates:
        return 0, ""
    pid = rng.choice(candidates)
    with suppress(ProcessLookupError):
        os.kill(pid, signal_number)
    return pid, alive[pid]


class Sleepers:
    """Workers that were stopped (SIGSTOP) for longer than their leases, each with the instant when it goes on."""

    def __init__(self) -> None:
        self._until: dict[int, float] = {}

    def add(self, pid: int, until: float) -> None:
        self._until[pid] = until

    def wake(self, now: float) -> None:
        """Let those go on whose time is over."""
        for pid in [pid for pid, until in self._until.items() if until <= now]:
            del self._until[pid]
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

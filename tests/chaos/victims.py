"""What chaos kills: worker processes of functions, and the whole embedded AWS."""

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


def kill_one(embedded: Embedded, rng: random.Random, executors_share: float = 0.7) -> str:
    """Kill -9 one worker, mostly an executor's; the name of its function, empty if there was none."""
    alive = workers(embedded)
    executors = sorted(pid for pid, name in alive.items() if name.endswith("-executor"))
    rest = sorted(set(alive) - set(executors))
    first, second = (executors, rest) if rng.random() < executors_share else (rest, executors)
    candidates = first or second
    if not candidates:
        return ""
    pid = rng.choice(candidates)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    return alive[pid]

"""A lock between processes of this machine: two tests, or two terminals, may build the same thing at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def one_at_a_time(path: Path) -> Iterator[None]:
    """Wait until no other process is inside with the same `path`. The kernel frees it however a process ends."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield

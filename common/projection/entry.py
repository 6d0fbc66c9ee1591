"""A run as the projection keeps it: what lists filter by and what summaries count, in some 15 bytes. Pure.

Entries are stored by name and job, so that neighbours are alike in the compressed text.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from common.planning.execution import split_run_name
from common.runs.run import REQUIRED, Run
from common.runs.states import QUEUED, RETRYING, RUNNING
from common.timing.windows import window_start

# The attributes of a record that an entry is made of, and those that say when it may change and when it expires.
ATTRIBUTES: Final = (
    *(*REQUIRED, "reason", "skipped_count", "lateness_s", "duration_s"),
    *(
        "started_at",
        "next_attempt_at",
        "lease_until",
        "expires_at",
        "attempt",
        "accepted_attempt",
        "durable",
    ),
)
OPEN: Final = frozenset({QUEUED, RUNNING, RETRYING})

# A run's name and its job. The name begins with the fire time, so these sort by it.
RunKey = tuple[str, str]


class RunEntry(Struct, frozen=True, array_like=True, gc=False):
    """One run. `fires`: fire times that one record of skipped runs stands for. Seconds have two digits."""

    run_name: str
    job_id: str
    status: str
    reason: str = ""
    fires: int = 1
    lateness_s: float | None = None
    duration_s: float | None = None

    @property
    def key(self) -> RunKey:
        return self.run_name, self.job_id

    @property
    def is_open(self) -> bool:
        """Whether the run goes on without any note in the log of changes."""
        return self.status in OPEN

    @property
    def fire_at(self) -> int:
        """Epoch seconds."""
        return fire_time(self.run_name)

    @classmethod
    def of_run(cls, run: Run) -> RunEntry:
        """The entry of a run."""
        return cls(
            run.run_name,
            run.job_id,
            run.status,
            run.reason,
            run.skipped_count or 1,
            rounded(run.lateness_s),
            rounded(run.duration_s),
        )


def fire_time(run_name: str) -> int:
    """The fire time in a run's name, epoch seconds. Raises ValueError."""
    if (parts := split_run_name(run_name)) is None:
        raise ValueError(run_name)
    return parts[0]


def window_of(run_name: str) -> int:
    """The start of the ten minutes of the run's fire time. Raises ValueError."""
    return window_start(fire_time(run_name))


def rounded(value: float | None) -> float | None:
    """With two digits, so that a day has at most some hundred different values."""
    return None if value is None else float(f"{value:.2g}")

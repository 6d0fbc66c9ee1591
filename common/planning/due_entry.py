"""A job's due entry, and missed fire times.

Only shapes: executors load them too, and compute no times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Raw, Struct
from msgspec.json import Decoder, Encoder

from common.timing.schedule import Schedule

if TYPE_CHECKING:
    from common.timing.excluded_days import Excluded

CatchUp = Literal["none", "latest", "all"]


class DueEntry(Struct, frozen=True, array_like=True):
    """The fields of a job that a tick needs. Kept small: a tick can read a million entries."""

    tenant: str
    job_id: str
    schedule: Schedule
    effective_at: int
    schedule_revision: int
    catch_up: CatchUp

    def encode(self) -> str:
        """As one JSON text: a map of attributes would take three times as long to read."""
        return _ENCODER.encode(self).decode()

    @classmethod
    def decode(cls, text: str) -> DueEntry:
        """The inverse of `encode`. Raises one of DAMAGE on anything else."""
        tenant, job_id, schedule, effective_at, schedule_revision, catch_up = _DECODER.decode(text)
        return cls(tenant, job_id, _schedule(bytes(schedule)), effective_at, schedule_revision, catch_up)


_ENCODER: Final = Encoder()
_DECODER: Final = Decoder(tuple[str, str, Raw, int, int, CatchUp])
_SCHEDULES: Final = Decoder(Schedule)


@lru_cache(maxsize=64)  # of up to 10 KB each; the entries of a group come together, and many are alike
def _schedule(text: bytes) -> Schedule:
    return _SCHEDULES.decode(text)


@dataclass(frozen=True, slots=True)
class Missed:
    """Fire times that will not run, in one record: how many, the first and the last."""

    tenant: str
    job_id: str
    schedule_revision: int
    count: int
    first_fire_at: int
    last_fire_at: int
    catch_up: CatchUp
    schedule: Schedule
    excluded: Excluded = ()

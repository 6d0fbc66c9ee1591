"""The keys of what was enqueued, and of what of it has no record.

| table   | pk                           | sk                              | item                                   |
| ------- | ---------------------------- | ------------------------------- | -------------------------------------- |
| due     | PLANNED#0…3                  | start of window#hash            | executions that were enqueued for it   |
| due     | RECONCILED                   | RECONCILED                      | up to where they were looked for       |
| due     | UNRECORDED                   | execution id                    | one of them that has no record         |
"""

from __future__ import annotations

import zlib
from typing import Final

from common.storage.keys import Key

# Fewer than of the others: every tick reads all of them.
_SPREAD: Final = 4


def planned(window: int, name: str) -> Key:
    """It has the window's start, so that one range holds all that ended before an instant; ten-digit seconds sort."""
    return {"pk": f"PLANNED#{zlib.crc32(name.encode()) % _SPREAD}", "sk": f"{window:010d}#{name}"}


def window_of(planned_sk: str) -> int:
    """The inverse of `planned`'s sk."""
    return int(planned_sk.partition("#")[0])


def between(start: int, end: int) -> tuple[str, str]:
    """The sort keys of the windows that start in [start, end)."""
    return f"{start:010d}", f"{end:010d}"


def partitions() -> list[str]:
    return [f"PLANNED#{n}" for n in range(_SPREAD)]


RECONCILED: Final[Key] = {"pk": "RECONCILED", "sk": "RECONCILED"}

UNRECORDED: Final = "UNRECORDED"


def unrecorded(execution_id: str) -> Key:
    return {"pk": UNRECORDED, "sk": execution_id}

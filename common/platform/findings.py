"""The result of a check: one line, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypedDict, Unpack


class Level(StrEnum):
    """The level of a finding, worst first."""

    FAILED = "failed"
    WARNING = "warning"
    NOT_CHECKED = "not checked"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Repair:
    """The repair of a finding. `do` raises if the repair fails. Repairs are made by rising `order`.

    A repair that `sends` puts messages into the queues: it waits until nothing loses them any more.
    """

    description: str
    do: Callable[[], object]
    order: int = 0
    sends: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `examine` fills in `check`. What `loses` messages comes before repairs that send some.

    `page` is the name of the runbook's page, without its ending. `since_at` is from when on it holds, if that is known.
    """

    level: Level
    message: str
    remedy: str = ""
    check: str = ""
    repair: Repair | None = None
    loses: bool = False
    page: str = ""
    since_at: float | None = None


class Known(TypedDict, total=False):
    """What else may be known of a finding, as in `Finding`."""

    page: str
    since_at: float


DEPLOY = "deploy the stage again"
# A deployment of an unchanged template does not notice what is gone.
RESTORE = "revert the stack's drift: docs/deploying.md says how"


def failed(message: str, remedy: str, repair: Repair | None = None, **more: Unpack[Known]) -> Finding:
    """A finding that something does not work."""
    return Finding(Level.FAILED, message, remedy, repair=repair, **more)


def warning(message: str, remedy: str, repair: Repair | None = None, **more: Unpack[Known]) -> Finding:
    """A finding that something may soon not work."""
    return Finding(Level.WARNING, message, remedy, repair=repair, **more)


def repairable(message: str, repair: Repair, *, page: str = "") -> Finding:
    """A failure that `minute8 doctor --fix` puts right."""
    return failed(message, f"{repair.description}; `minute8 doctor --fix` does it", repair, page=page)


def not_checked(message: str, remedy: str = "") -> Finding:
    """A finding that something could not be checked."""
    return Finding(Level.NOT_CHECKED, message, remedy)


def ok(message: str) -> Finding:
    """A good result, shown only if the check has no other finding."""
    return Finding(Level.OK, message)

"""The result of a check: one line, and what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is, worst first."""

    FAILED = "failed"
    WARNING = "warning"
    NOT_CHECKED = "not checked"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Repair:
    """What puts a finding right: `told` describes it, `do` makes it and raises if it fails. Made by rising `order`."""

    told: str
    do: Callable[[], object]
    order: int = 0


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `examine` fills in `check`."""

    level: Level
    found: str
    remedy: str = ""
    check: str = ""
    repair: Repair | None = None


DEPLOY = "deploy the stage again"
# A deployment of an unchanged template does not notice what is gone.
RESTORE = "revert the stack's drift: docs/deploying.md says how"


def failed(found: str, remedy: str, repair: Repair | None = None) -> Finding:
    """A finding that something does not work."""
    return Finding(Level.FAILED, found, remedy, repair=repair)


def warning(found: str, remedy: str, repair: Repair | None = None) -> Finding:
    """A finding that something may soon not work."""
    return Finding(Level.WARNING, found, remedy, repair=repair)


def repairable(found: str, repair: Repair) -> Finding:
    """A failure that `minute8 doctor --fix` puts right."""
    return failed(found, f"{repair.told}; `minute8 doctor --fix` does it", repair)


def not_checked(found: str, remedy: str = "") -> Finding:
    """A finding that something could not be checked."""
    return Finding(Level.NOT_CHECKED, found, remedy)


def ok(found: str) -> Finding:
    """A good result, shown only if the check found nothing else."""
    return Finding(Level.OK, found)

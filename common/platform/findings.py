"""The result of a check: one line, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How bad it is, worst first."""

    FAILED = "failed"
    WARNING = "warning"
    NOT_CHECKED = "not checked"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report. `examine` fills in `check`."""

    level: Level
    found: str
    remedy: str = ""
    check: str = ""


DEPLOY = "deploy the stage again"


def failed(found: str, remedy: str) -> Finding:
    return Finding(Level.FAILED, found, remedy)


def warning(found: str, remedy: str) -> Finding:
    return Finding(Level.WARNING, found, remedy)


def not_checked(found: str, remedy: str = "") -> Finding:
    return Finding(Level.NOT_CHECKED, found, remedy)


def ok(found: str) -> Finding:
    """A good result, shown only if the check found nothing else."""
    return Finding(Level.OK, found)

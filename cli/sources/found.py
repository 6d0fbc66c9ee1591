"""What a reader finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the command line says for all jobs of a source that says nothing of it."""

    target: dict[str, Any] | None = None
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """One job of a source, or why it cannot be one.

    `where` is its place in the source. `notes` say what means something else here. `suspended` ones are created
    paused; one that exists keeps its state.
    """

    where: str
    job_id: str = ""
    definition: dict[str, Any] = field(default_factory=dict)
    refusal: str = ""
    notes: tuple[str, ...] = ()
    suspended: bool = False

"""The platform's view of planning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.shapes.parts import Answer, Instant, Seconds, Shapes


class PlanningMark(Answer):
    """Up to when everything is planned."""

    planned_until_at: Instant
    planning_until_at: Instant = Field(description="Later than `planned_until_at` while a window is open.")
    lag_s: Seconds = Field(description="How far the mark is behind the present: executions are late by it.")
    ticks_missed: int
    decided_at: Instant = Field(description="When the last window was announced.")
    divided: bool = Field(description="Planners have shares of the open window.")
    tzdata: str


class WindowPlanned(Answer):
    """How the planning of a window went."""

    start_at: Instant
    end_at: Instant
    began_at: Instant
    took_s: Seconds = Field(description="From the tick's begin to the end of its last part.")
    ahead_s: float = Field(description="How long before the window this was; negative: after it had begun.")
    finished: bool
    executions: int = Field(description="Handed over; more than are due if parts were planned again.")
    missed: int
    bad_entries: int
    ticks: int
    planners: int = Field(description="How many shares were planned by planners.")


class NotPlanned(Answer):
    """A group, a share or a job's entry that could not be planned."""

    kind: str
    name: str
    reason: str
    seen_at: Instant
    start_at: Instant | None
    end_at: Instant | None
    tries: int


class DoctorFinding(Answer):
    """What a check of the doctor found."""

    check: str
    level: Literal["failed", "warning", "not_checked", "ok"]
    found: str
    remedy: str


class PlatformPlanning(Answer):
    """How the planning of all tenants' jobs is."""

    mark: PlanningMark | None = Field(description="Null: nothing has been planned yet.")
    shares_left: int = Field(description="Shares of the open window that planners have not finished.")
    calls_at_once: int = Field(
        description="How many calls of targets the deployment's parameters allow at once."
    )
    windows: list[WindowPlanned] = Field(description="The newest first.")
    set_aside: list[NotPlanned] = Field(description="Groups and shares first; 50 at most.")
    findings: list[DoctorFinding] = Field(description="Of the checks that read only what ticks wrote down.")


TAKEN: Shapes = ()
GIVEN: Shapes = (PlatformPlanning,)

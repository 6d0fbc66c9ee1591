"""The platform's view of planning."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from api.shapes.parts import Answer, Instant, Seconds, Shapes


class PlanningMark(Answer):
    """Up to when everything is planned."""

    planned_until_at: Instant = Field(description="Everything before it is handed over.")
    planning_until_at: Instant = Field(description="Later than `planned_until_at` while a window is open.")
    lag_s: Seconds = Field(description="How far the mark is behind the present: executions are late by it.")
    ticks_missed: int = Field(description="How many ticks should have moved the mark and did not.")
    decided_at: Instant = Field(description="When the last window was announced.")
    divided: bool = Field(description="Planners have shares of the open window.")
    tzdata: str = Field(description="The release of the time zone data that ticks plan by.")


class WindowPlanned(Answer):
    """How the planning of a window went."""

    start_at: Instant
    end_at: Instant
    began_at: Instant = Field(description="When its first tick began.")
    took_s: Seconds = Field(description="From the tick's begin to the end of its last part.")
    ahead_s: float = Field(description="How long before the window this was; negative: after it had begun.")
    finished: bool = Field(description="Whether the mark has passed it.")
    executions: int = Field(description="Handed over; more than are due if parts were planned again.")
    missed: int = Field(description="How many fire times were skipped as missed.")
    bad_entries: int = Field(description="How many jobs could not be planned.")
    ticks: int = Field(description="How many ticks worked at it.")
    planners: int = Field(description="How many shares were planned by planners.")


class NotPlanned(Answer):
    """A group, a share or a job's entry that could not be planned."""

    kind: Literal["group", "share", "entry"] = Field(description="What it is.")
    name: str = Field(description="Of an entry: tenant and job.")
    reason: str = Field(description="Why it could not be planned.")
    seen_at: Instant = Field(description="When that was noticed last.")
    start_at: Instant | None = Field(description="From when on it is not planned.")
    end_at: Instant | None = Field(description="Until when it is not planned.")
    tries: int = Field(description="How many times it was tried again.")


class DoctorFinding(Answer):
    """What a check of the doctor found."""

    check: str = Field(description="The check, as `minute8 doctor` calls it.")
    level: Literal["failed", "warning", "not_checked", "ok"] = Field(description="How bad it is.")
    found: str = Field(description="What it found.")
    remedy: str = Field(description="What to do about it.")


class PlatformPlanning(Answer):
    """How the planning of all tenants' jobs is."""

    mark: PlanningMark | None = Field(description="Null: nothing has been planned yet.")
    shares_left: int = Field(description="Shares of the open window that planners have not finished.")
    calls_at_once: int = Field(
        description="How many calls of targets the deployment's parameters allow at once."
    )
    windows: list[WindowPlanned] = Field(description="The newest first.")
    set_aside: list[NotPlanned] = Field(description="Groups and shares first; 50 at most.")
    findings: list[DoctorFinding] = Field(
        description="The alarms that are on, then what the checks found that read only what ticks wrote down."
    )


TAKEN: Shapes = ()
GIVEN: Shapes = (PlatformPlanning,)
